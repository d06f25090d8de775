"""How `devhost doctor` looks on a terminal, and in a pipe."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from devhost.cli.doctor import Report
    from devhost.cli.findings import Finding

_STYLES = {"ok": "green", "warning": "yellow", "error": "bold red"}
_WIDTH = max(map(len, _STYLES))


def print_report(report: Report) -> None:
    """Print the findings, a summary, and the block for a bug report."""
    console = Console(highlight=False, markup=False)

    def line(text: Text) -> None:
        # soft_wrap: the terminal breaks the line, the text stays one line.
        console.print(text, soft_wrap=True)

    for finding in report["findings"]:
        line(_headline(finding))
        indent = " " * (_WIDTH + 2)
        for row in finding["traceback"].splitlines():
            line(Text(f"{indent}| {row}", style="dim"))
        if finding["remedy"]:
            line(Text(f"{indent}-> {finding['remedy']}"))
    line(Text(f"\n{_summary(report)}\n"))
    line(Text("For a bug report, without personal paths:\n"))
    line(Text(report["bug_report"]))


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr meanwhile, if that is a terminal.

    Yields:
        A function to call with the number of steps done and of all steps.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with bar:
        task = bar.add_task("checking", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _headline(finding: Finding) -> Text:
    about = f"{finding['check']} {finding['subject']}".rstrip()
    took = f" ({finding['seconds']:.1f} s)" if finding["seconds"] is not None else ""
    return Text.assemble(
        (f"{finding['severity']:<{_WIDTH}}", _STYLES[finding["severity"]]),
        f"  {about}: {finding['cause']}{took}",
    )


def _summary(report: Report) -> str:
    severities = [finding["severity"] for finding in report["findings"]]
    errors, warnings = severities.count("error"), severities.count("warning")
    if not errors and not warnings:
        return "Nothing is wrong."
    counts = [
        f"{count} {noun}{'' if count == 1 else 's'}"
        for count, noun in ((errors, "error"), (warnings, "warning"))
        if count
    ]
    return f"{' and '.join(counts)}."
