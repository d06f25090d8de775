"""The command `devhost`.

Nothing here imports torch: the command works where torch is broken, and it answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

import devhost

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_TIMEOUT = 10.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Its arguments; None for those of the process.

    Returns:
        The exit status: 0, or 1 if the output could not be written or `devhost use` failed.

    Raises:
        SystemExit: With status 2 for arguments that make no sense, 0 after --help or --version.
    """
    options = _parser().parse_args(argv)
    # A name that the terminal cannot show must not cost the whole output.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")

    try:
        status = _use(options) if options.command == "use" else _list(options)
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
        listing.print_json(report)
    else:
        from devhost.cli import table

        table.print_report(report)
    return 0


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
    listing.add_argument("--json", action="store_true", help="print JSON instead of a table")
    listing.add_argument(
        "--timeout",
        type=_seconds,
        default=DEFAULT_TIMEOUT,
        metavar="SECONDS",
        help="give up on a plugin after this time (default: %(default)g)",
    )
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
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return seconds
