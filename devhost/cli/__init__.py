"""The command `devhost`.

Nothing here imports torch: the command works where torch is broken, and it answers at once.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING

import devhost

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Its arguments; None for those of the process.

    Returns:
        The exit status: 0, or 1 if something is wrong or the output could not be written.

    Raises:
        SystemExit: With status 2 for arguments that make no sense, 0 after --help or --version.
    """
    options = _parser().parse_args(argv)
    # A name that the terminal cannot show must not cost the whole output.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:  # closed by who started the command, so that nothing can be written
        return 1
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough, as in `devhost list | head -1`. What Python
        # still holds must go somewhere at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _list(options: argparse.Namespace) -> int:
    from devhost.cli import listing

    def prepare() -> None:
        # rich takes as long to import as a plugin takes to be looked at: use the waiting time.
        if not options.json:
            import devhost.cli.table  # noqa: F401

    report = listing.make_report(timeout=options.timeout, while_waiting=prepare)
    if options.json:
        _print_json(report)
    else:
        from devhost.cli import table

        table.print_report(report)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from devhost.cli import diagnosis, doctor

    with diagnosis.progress_bar() as progress:
        report = doctor.make_report(options.timeout, progress)
    if options.json:
        _print_json(report)
    else:
        diagnosis.print_report(report)
    return 1 if report["severity"] == "error" else 0


def _info(options: argparse.Namespace) -> int:
    from devhost.cli import info
    from devhost.errors import SelectionError

    try:
        report = info.make_report(options.name, options.timeout)
    except SelectionError as error:
        print(f"devhost info: {error}", file=sys.stderr)
        return 1
    if options.json:
        _print_json(report)
    else:
        from devhost.cli import sheet

        sheet.print_report(report)
    return 0


def _print_json(report: object) -> None:
    """Print a report as JSON; ``COMMAND.schema.json`` documents that of each command."""
    print(json.dumps(report, indent=2))


def _use(options: argparse.Namespace) -> int:
    from devhost.cli import use

    return use.run(options.choice, clear=options.clear, as_json=options.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="devhost", description="Look at the PyTorch device plugins of this environment."
    )
    parser.add_argument("--version", action="version", version=f"devhost {devhost.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser(
        "list",
        help="show the installed device plugins",
        description="Show every installed device plugin, its state and the reason for it, and "
        "which one `import torch` activates. torch is not imported; each plugin is looked at in "
        "a process of its own.",
    )
    listing.set_defaults(run=_list)
    _add_common(listing, timeout=10.0)

    doctor = commands.add_parser(
        "doctor",
        help="find out what is wrong",
        description="Check Python, torch, the configuration, and every plugin, extension and other "
        "backend in a process of its own: each plugin is activated, and its device tested. Says of "
        "everything that is wrong why, and what to do; ends with a block for a bug report. The "
        "exit status is 1 if something is wrong.",
    )
    doctor.set_defaults(run=_doctor)
    _add_common(doctor, timeout=60.0)

    info = commands.add_parser(
        "info",
        help="show everything about one plugin",
        description="Activate one plugin in a process of its own, and show what it is, where it "
        "comes from, its hooks, its devices with their memory, which functions of torch.<name> "
        "are derived from it, supplied by it or missing, and how many operators have a kernel.",
    )
    info.add_argument("name", metavar="NAME", help="name of a device or of a distribution")
    info.set_defaults(run=_info)
    _add_common(info, timeout=60.0)

    use = commands.add_parser(
        "use",
        help="save which device plugin this environment uses",
        description="Save which device plugin `import torch` activates in this environment, for "
        "every user of it; without NAME, show what is saved, and where. DEVHOST_DEVICE overrides "
        "it.",
    )
    wanted = use.add_mutually_exclusive_group()
    wanted.add_argument(
        "choice",
        nargs="?",
        metavar="NAME",
        help="name of a device or of its distribution; several with commas between them, in order "
        "of preference; or none",
    )
    wanted.add_argument("--clear", action="store_true", help="remove what is saved")
    use.add_argument("--json", action="store_true", help="print JSON instead of text")
    use.set_defaults(run=_use)
    return parser


def _add_common(command: argparse.ArgumentParser, timeout: float) -> None:
    command.add_argument("--json", action="store_true", help="print JSON instead of text")
    command.add_argument(
        "--timeout",
        type=_seconds,
        default=timeout,
        metavar="SECONDS",
        help="give up on a plugin after this time (default: %(default)g)",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return seconds
