"""How `devhost list` looks on a terminal, and in a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from devhost.cli.listing import Plugin, Report

_STYLES = {
    "available": "green",
    "unavailable": "yellow",
    "failed": "red",
    "disabled": "dim",
    "shadowed": "dim",
}
_UNLIMITED_WIDTH = 10_000


def print_report(report: Report) -> None:
    """Print the table of plugins, the reasons below it, and what `import torch` does."""
    # Colours are left to rich, which knows NO_COLOR, FORCE_COLOR and dumb terminals. So is a
    # terminal's width, which COLUMNS overrides; but a pipe gets 80 columns, and what somebody wants
    # to grep would be folded.
    width = None if sys.stdout.isatty() else _UNLIMITED_WIDTH
    console = Console(highlight=False, width=width)
    if report["plugins"]:
        console.print(_table(report["plugins"]))
    for plugin in report["plugins"]:
        if plugin["reason"]:
            name = plugin["name"] or plugin["distribution"]
            # soft_wrap: the terminal breaks the line, the text stays one line.
            console.print(Text(f"{name}: {plugin['reason']}"), soft_wrap=True)
    for backend in report["foreign_backends"]:
        console.print(
            Text(
                f"foreign backend: {backend['entry_point']} of {backend['distribution']} "
                f"{backend['version']}, which `import torch` calls as well; `devhost doctor` says "
                "what it does to PyTorch's slot"
            ),
            soft_wrap=True,
        )
    for line in (*report["selection"]["notes"], *report["extension_failures"], _summary(report)):
        console.print(Text(line), soft_wrap=True)


def _table(plugins: list[Plugin]) -> Table:
    table = Table()
    for column in ("name", "distribution", "version", "status"):
        table.add_column(column, no_wrap=True)
    table.add_column("devices", overflow="fold")
    table.add_column("description", overflow="fold")
    for plugin in plugins:
        status = plugin["status"] + (" (active)" if plugin["active"] else "")
        table.add_row(
            Text(plugin["name"]),
            Text(plugin["distribution"]),
            Text(plugin["version"]),
            Text(status, style=_STYLES[plugin["status"]]),
            Text(_counted(plugin["devices"])),
            Text(plugin["description"]),
        )
    return table


def _counted(devices: list[str]) -> str:
    counts = {name: devices.count(name) for name in devices}
    return ", ".join(name if n == 1 else f"{n} x {name}" for name, n in counts.items())


def _summary(report: Report) -> str:
    selection = report["selection"]
    if report["torch"] is None:
        return "torch is not installed."
    what = f"device '{selection['device']}'" if selection["device"] else "no device"
    summary = f"`import torch` activates {what}: {selection['reason']}."
    if not selection["autoload"]:
        summary += (
            " But it does not run now, because TORCH_DEVICE_BACKEND_AUTOLOAD is not 1: "
            "devhost.load() does the same by hand."
        )
    return summary
