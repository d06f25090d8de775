"""Compare a device with the CPU: `python benchmarks --device openreg`, or `make bench`.

Prints a table of device/CPU ratios for each group with its geometric mean; 1.00 means that the
device costs no more than the CPU does. Exit status 1 if anything failed on the device.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

import hosting
import import_time
import operators
import stock_fallback
import torch
from cases import CASES
from measure import Comparison, compare, geometric_mean
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

START_UP = "start-up"
HOSTING = "hosting"
GROUPS = [*dict.fromkeys(case.group for case in CASES), operators.GROUP, START_UP, HOSTING]


def parse_arguments() -> argparse.Namespace:
    """Return the checked command line; `device` is a torch.device, `group` never empty."""
    parser = argparse.ArgumentParser("benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--device",
        default=torch.accelerator.current_accelerator(check_available=True) or "cpu",
        help="device to compare with the CPU (default: %(default)s); "
        f"{stock_fallback.NAME} is PyTorch's stock CPU fallback, compiled on demand",
    )
    parser.add_argument(
        "--group", action="append", choices=GROUPS, help="run this group only; may be repeated"
    )
    parser.add_argument(
        "--rounds", type=int, default=7, help="rounds on each side (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error(f"argument --rounds: must be at least 1, not {arguments.rounds}")
    if arguments.device == stock_fallback.NAME:
        stock_fallback.register()
    try:
        arguments.device = torch.device(arguments.device)
    except RuntimeError as error:
        parser.error(f"argument --device: {error}")
    arguments.group = arguments.group or GROUPS
    return arguments


def summary(rows: list[Comparison]) -> dict[str, float]:
    """Return the geometric mean and the largest of the ratios; cases that failed do not count."""
    ratios = [row.ratio for row in rows if row.error is None]
    return {"geomean": geometric_mean(ratios), "worst": max(ratios, default=float("nan"))}


def group_report(rows: list[Comparison]) -> dict[str, object]:
    """Return what --json holds of a group; times are in seconds."""
    cases: dict[str, object] = {}
    for row in rows:
        if row.error is not None:
            cases[row.case.name] = {"error": row.error}
            continue
        cases[row.case.name] = {
            "device_seconds": row.device_seconds,
            "cpu_seconds": row.cpu_seconds,
            "ratio": row.ratio,
        }
    return {**summary(rows), "cases": cases}


def group_table(group: str, rows: list[Comparison], device: torch.device) -> Table:
    """Lay out one group, a row for each case, with the summary in the footer."""
    table = Table(title=group, title_justify="left", show_footer=True)
    totals = summary(rows)
    table.add_column("case", "geometric mean (worst)")
    table.add_column(f"{device} µs", justify="right")
    table.add_column("cpu µs", justify="right")
    table.add_column("ratio", f"{totals['geomean']:.2f} ({totals['worst']:.2f})", justify="right")
    for row in rows:
        if row.error is not None:
            table.add_row(row.case.name, f"[red]{row.error}", "", "[red]failed")
            continue
        times = (f"{1e6 * seconds:,.2f}" for seconds in (row.device_seconds, row.cpu_seconds))
        table.add_row(row.case.name, *times, f"{row.ratio:.2f}")
    return table


def start_up_table(result: import_time.StartUp) -> Table:
    """Lay out what fresh interpreters took."""
    table = Table(title=START_UP, title_justify="left")
    table.add_column("in a fresh interpreter")
    table.add_column("median ms", justify="right")
    table.add_row("import torch, autoload on", f"{1e3 * result.with_autoload:,.1f}")
    table.add_row("import torch, autoload off", f"{1e3 * result.without_autoload:,.1f}")
    table.add_row("difference of a pair", f"{1e3 * result.autoload:,.1f}")
    table.add_row("devhost list", f"{1e3 * result.list_command:,.1f}", end_section=True)
    for phase, seconds in result.phases.items():
        table.add_row(phase, f"{1e3 * seconds:,.2f}")
    table.add_row("loading native modules, in these", f"{1e3 * result.native:,.2f}")
    table.add_row("the host: the sum without that", f"{1e3 * result.host:,.2f}")
    return table


def hosting_table(result: hosting.Hosting) -> Table:
    """Lay out what many plugins cost."""
    title = f"{HOSTING}, {result.distributions} distributions"
    table = Table(title=title, title_justify="left")
    table.add_column("device plugins", justify="right")
    table.add_column("autoload, median ms", justify="right")
    table.add_column("devhost list, median ms", justify="right")
    for plugins, seconds in result.autoload.items():
        times = (f"{1e3 * value:,.1f}" for value in (seconds, result.list_command[plugins]))
        table.add_row(str(plugins), *times)
    return table


def main() -> int:
    """Run the groups asked for, print their tables and return the exit status."""
    arguments = parse_arguments()
    device: torch.device = arguments.device
    torch.set_num_threads(1)  # as Timer does; also for what runs before the first measurement
    cases = [case for case in CASES if case.group in arguments.group]
    if operators.GROUP in arguments.group:
        cases += operators.operator_cases()

    console = Console()
    report: dict[str, object] = {
        "torch": torch.__version__,
        "device": str(device),
        "rounds": arguments.rounds,
    }
    failures = 0
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("benchmarks", total=len(cases))
        results: dict[str, list[Comparison]] = {}
        for case in cases:
            progress.update(task, description=f"{case.group}: {case.name}")
            results.setdefault(case.group, []).append(compare(case, device, arguments.rounds))
            progress.advance(task)
        for group, rows in results.items():
            console.print(group_table(group, rows, device))
            failures += sum(row.error is not None for row in rows)
            report[group] = group_report(rows)
        if START_UP in arguments.group:
            task = progress.add_task(START_UP, total=arguments.rounds)
            start_up = import_time.measure(arguments.rounds, lambda: progress.advance(task))
            console.print(start_up_table(start_up))
            report[START_UP] = dataclasses.asdict(start_up)
        if HOSTING in arguments.group:
            task = progress.add_task(HOSTING, total=arguments.rounds + 1)
            many = hosting.measure(arguments.rounds, lambda: progress.advance(task))
            console.print(hosting_table(many))
            report[HOSTING] = dataclasses.asdict(many)

    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    if failures:
        console.print(f"[red]{failures} of {len(cases)} cases failed on {device}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
