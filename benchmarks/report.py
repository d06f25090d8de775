"""Writes docs/benchmarks.md and its plot: `python benchmarks/report.py OURS.json STOCK.json`.

Both files are what `python benchmarks --json` has written on one machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot
from measure import geometric_mean

DOCS = Path(__file__).parent.parent / "docs"
PLOT = Path("_static", "benchmarks.svg")

INTRODUCTION = """\
# Benchmarks

The same work on a device and on the CPU, in one process and by turns, with one thread. A ratio is
the fastest call on the device divided by the fastest on the CPU: 1.00 means that the device costs
no more than the CPU's kernel alone. The second device, for comparison, is PyTorch's stock CPU
fallback (`at::native::cpu_fallback`), which copies every argument and every result; it is compared
with the CPU of its own process, because a process has room for one such device.

`make bench` measures all of it again and writes this page.
"""


def machine() -> str:
    """Return what the measurement depends on, without the name of the machine."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = [line.split(":", 1) for line in information.read_text().splitlines() if ":" in line]
        model = next((v.strip() for k, v in lines if k.strip() == "model name"), model)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {cores} cores, {platform.system()}, Python {platform.python_version()}"


def ratios(group: dict[str, Any]) -> dict[str, float]:
    """Return the ratio of every case of a group; NaN for one that failed."""
    return {name: case.get("ratio", math.nan) for name, case in group["cases"].items()}


def groups(report: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the ratios of every group that compares the device with the CPU."""
    return {
        name: ratios(value)
        for name, value in report.items()
        if isinstance(value, dict) and "cases" in value
    }


def number(value: float) -> str:
    """Return a ratio as it is printed."""
    return "failed" if math.isnan(value) else f"{value:.2f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; all columns but the first are numbers."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows]) + "\n"


def summary(values: dict[str, float]) -> list[str]:
    """Return geometric mean, worst and the number of failures, as cells."""
    good = [v for v in values.values() if not math.isnan(v)]
    return [
        number(geometric_mean(good)),
        number(max(good, default=math.nan)),
        str(len(values) - len(good)),
    ]


def plot(ours: dict[str, dict[str, float]], stock: dict[str, dict[str, float]], path: Path) -> None:
    """Draw every ratio: a panel for each group, the cases in order of our ratio."""
    mpl.rcParams["svg.hashsalt"] = "devhost"  # the same numbers give the same file
    figure, axes = pyplot.subplots(
        len(ours), figsize=(9, 2.4 * len(ours)), layout="constrained", squeeze=False
    )
    for axis, (name, values) in zip(axes.flat, ours.items(), strict=True):
        order = sorted(
            (case for case in values if not math.isnan(values[case])), key=values.__getitem__
        )
        for label, series, marker in (("stock fallback", stock, "x"), ("openreg", ours, ".")):
            heights = [series.get(name, {}).get(case, math.nan) for case in order]
            axis.plot(range(len(order)), heights, marker, label=label, markersize=4)
        axis.axhline(1, color="gray", linewidth=0.8)
        axis.set(title=name, yscale="log", ylabel="ratio to the CPU", xticks=[])
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def milliseconds(seconds: float) -> str:
    """Return a time as it is printed."""
    return f"{1e3 * seconds:.2f}"


def start_up(report: dict[str, Any]) -> list[str]:
    """Return the sections about what `import torch` and `devhost list` take."""
    parts: list[str] = []
    if times := report.get("start-up"):
        parts += [
            "## Start-up\n",
            f"Autoload adds {milliseconds(times['host'])} ms to `import torch`, and "
            f"{milliseconds(times['native'])} ms for loading OpenReg's native modules, which the "
            "steps below include. Medians:\n",
            table(["step", "ms"], [[k, milliseconds(v)] for k, v in times["phases"].items()]),
        ]
    if times := report.get("hosting"):
        rows = [
            [plugins, milliseconds(seconds), milliseconds(times["list_command"][plugins])]
            for plugins, seconds in times["autoload"].items()
        ]
        parts += [
            f"Among {times['distributions']} distributions in a folder of their own:\n",
            table(["device plugins", "autoload, ms", "`devhost list`, ms"], rows),
        ]
    return parts


def main() -> None:
    """Write the page and the plot."""
    parser = argparse.ArgumentParser("report", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ours", type=Path)
    parser.add_argument("stock", type=Path)
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder to write to")
    arguments = parser.parse_args()
    report = json.loads(arguments.ours.read_text())
    ours, stock = groups(report), groups(json.loads(arguments.stock.read_text()))

    (arguments.docs / PLOT).parent.mkdir(exist_ok=True)
    plot(ours, stock, arguments.docs / PLOT)
    none = {"": math.nan}
    overview = table(
        ["group", "openreg", "worst", "failed", "stock fallback", "worst", "failed"],
        [
            [name, *summary(values), *summary(stock.get(name, none))]
            for name, values in ours.items()
        ],
    )
    parts = [
        INTRODUCTION,
        f"{datetime.date.today():%d %B %Y}: {machine()}, torch {report['torch']}.\n",
        "Geometric means:\n",
        overview,
        f"```{{image}} {PLOT.as_posix()}\n:alt: All ratios, in order, for each group\n```\n",
    ]
    for name, values in ours.items():
        rows = [
            [case, number(value), number(stock.get(name, {}).get(case, math.nan))]
            for case, value in values.items()
        ]
        head = ["case", "openreg", "stock fallback"]
        parts += [f"## {name.capitalize()}\n", table(head, rows)]
    parts += start_up(report)
    (arguments.docs / "benchmarks.md").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
