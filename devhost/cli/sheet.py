"""How `devhost info` looks: one line per fact."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

from rich import filesize
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devhost.cli.info import Report

_STYLES = {"activated": "green", "unavailable": "yellow", "failed": "bold red"}
_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"]


def print_report(report: Report) -> None:
    """Print everything about one plugin."""
    console = Console(highlight=False)
    rows = list(_rows(report))
    width = max(len(title) for title, _ in rows)
    for title, value in rows:
        # soft_wrap: the terminal breaks the line, the text stays one line.
        console.print(Text.assemble((f"{title:<{width}}", "bold"), "  ", value), soft_wrap=True)


def _rows(report: Report) -> Iterator[tuple[str, str | Text]]:
    yield "device", report["name"]
    info = report["info"]
    if info is not None:
        yield "description", info["description"]
    yield "distribution", f"{report['distribution']} {report['version']}"
    yield "location", report["location"]
    yield "entry point", report["entry_point"]
    state = Text(report["state"], style=_STYLES.get(report["state"], ""))
    yield "state", state.append(f": {report['reason']}") if report["reason"] else state
    for line in report["traceback"].splitlines():
        yield "", line
    if info is not None:
        yield "simulated", "yes" if info["simulated"] else "no"
        yield "priority", str(info["priority"])
        yield "hook specs", f"version {info['spec_version']}"
        yield "torch", _versions(info)
    if report["hooks"] is not None:
        yield "hooks", ", ".join(report["hooks"])
    if report["probe"] is not None:
        probe = report["probe"]
        yield "probe", "available" if probe["available"] else f"unavailable: {probe['reason']}"
    for index, device in enumerate(report["devices"] or ()):
        yield f"device {index}", f"{device['name']}, {_memory(device)}"
    if report["module"] is not None:
        yield from _module(report["name"], report["module"])
    if report["kernels"] is not None:
        counts = (f"{count} {kind}" for kind, count in report["kernels"].items())
        yield "operators", ", ".join(counts)


def _versions(info: dict[str, Any]) -> str:
    text = f"{info['torch_min']} or newer"
    if info["torch_before"] is not None:
        text += f", before {info['torch_before']}"
    if info["built_for_torch"] is not None:
        text += f"; native part built for {info['built_for_torch']}"
    return text


def _memory(device: dict[str, Any]) -> str:
    total = f"{_size(device['total_memory'])} of memory"
    free = device["free_memory"]
    return total if free is None else f"{total}, {_size(free)} free"


def _module(name: str, module: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield f"torch.{name}", f"{len(module['derived'])} names derived by devhost"
    yield "supplied", ", ".join(module["supplied"]) or "none"
    by_need = collections.defaultdict(list)
    for function, need in module["missing"].items():
        by_need[need].append(function)
    for need, functions in by_need.items():
        yield "missing", f"{', '.join(functions)}: for lack of {need}"
    if not by_need:
        yield "missing", "none"


def _size(count: int) -> str:
    factor, unit = filesize.pick_unit_and_suffix(count, _UNITS, 1024)
    return f"{count / factor:.4g} {unit}"
