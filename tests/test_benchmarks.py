"""The benchmarks measure what they say. How fast anything is, is not asserted."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def run(*arguments):
    command = [sys.executable, str(BENCHMARKS), "--rounds", "1", *map(str, arguments)]
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("group", ["small operators", "training steps"])
def test_compares_the_device_with_the_cpu(tmp_path, group):
    done = run("--device", "openreg", "--group", group, "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stdout + done.stderr

    report = json.loads((tmp_path / "out.json").read_text())
    assert report["device"] == "openreg"
    cases = report[group]["cases"]
    for name, case in cases.items():
        assert case["device_seconds"] > 0 < case["cpu_seconds"]
        assert case["ratio"] == pytest.approx(case["device_seconds"] / case["cpu_seconds"])
        assert f"{name} " in done.stdout
    ratios = [case["ratio"] for case in cases.values()]
    assert report[group]["worst"] == max(ratios)
    geometric_mean = math.prod(ratios) ** (1 / len(ratios))
    assert report[group]["geomean"] == pytest.approx(geometric_mean)
    assert f"{geometric_mean:.2f} ({max(ratios):.2f})" in done.stdout


def test_a_case_that_fails_is_a_row_and_an_exit_status(tmp_path):
    # A meta tensor has no values, so that it cannot be copied to the host.
    done = run("--device", "meta", "--group", "copies", "--json", tmp_path / "out.json")
    assert done.returncode == 1
    assert "cases failed on meta" in done.stdout
    cases = json.loads((tmp_path / "out.json").read_text())["copies"]["cases"]
    assert (
        "NotImplementedError: Cannot copy out of meta tensor"
        in (cases["device to host, 1 MiB"]["error"])
    )
    assert cases["host to device, 1 MiB"]["ratio"] > 0


def test_measures_fresh_interpreters(tmp_path):
    done = run("--device", "cpu", "--group", "start-up", "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    times = json.loads((tmp_path / "out.json").read_text())["start-up"]
    assert times["autoload"] == pytest.approx(times["with_autoload"] - times["without_autoload"])
    assert times["list_command"] > 0
    assert "devhost list" in done.stdout
    # The device's own steps, and what the modules of devhost take; native modules are taken out.
    assert {"discover", "check", "kernels", "importing devhost and pluggy"} <= times[
        "phases"
    ].keys()
    assert times["native"] > 0
    total = sum(times["phases"].values())
    assert times["host"] == pytest.approx(total - times["native"])
    assert f"{1e3 * times['host']:.2f}" in done.stdout


def test_measures_many_plugins(tmp_path):
    done = run("--device", "cpu", "--group", "hosting", "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    times = json.loads((tmp_path / "out.json").read_text())["hosting"]
    for what in ("autoload", "list_command"):
        assert list(times[what]) == ["1", "50"]
        assert min(times[what].values()) > 0
    assert times["distributions"] == 300
    assert "hosting, 300 distributions" in done.stdout


def test_report_shows_start_up_and_hosting(tmp_path):
    measured = {
        "torch": "2.13.0",
        "copies": {"cases": {"to the host": {"ratio": 1.25}}},
        "start-up": {"host": 0.0123, "native": 0.0045, "phases": {"probe": 0.006}},
        "hosting": {
            "distributions": 7,
            "autoload": {"1": 0.02, "50": 0.03},
            "list_command": {"1": 0.2, "50": 0.4},
        },
    }
    (tmp_path / "ours.json").write_text(json.dumps(measured))
    command = [sys.executable, BENCHMARKS / "report.py", "ours.json", "ours.json", "--docs", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "benchmarks.md").read_text().splitlines()
    assert "| to the host | 1.25 | 1.25 |" in lines
    assert "| probe | 6.00 |" in lines
    assert "| 50 | 30.00 | 400.00 |" in lines
    assert "Among 7 distributions in a folder of their own:" in lines
    (sentence,) = (line for line in lines if line.startswith("Autoload adds 12.30 ms"))
    assert "4.50 ms for loading OpenReg's native modules" in sentence


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--device", "abacus"), "argument --device: Expected one of cpu, cuda"),
        (("--rounds", "0"), "argument --rounds: must be at least 1, not 0"),
        (("--group", "tiny"), "argument --group: invalid choice: 'tiny'"),
    ],
)
def test_refuses_bad_options(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_report_shows_every_ratio_of_both_devices(tmp_path):
    for name in ("openreg", "stock_fallback"):
        cases = {"add": {"ratio": 1.25}, "mul": {"ratio": 5.0}, "sub": {"error": "no"}}
        report = {"torch": "2.13.0", "small operators": {"cases": cases}}
        if name == "stock_fallback":
            cases["add"] = {"ratio": 2.5}
        (tmp_path / f"{name}.json").write_text(json.dumps(report))
    command = [sys.executable, str(BENCHMARKS / "report.py"), "--docs", str(tmp_path)]
    files = [str(tmp_path / f"{name}.json") for name in ("openreg", "stock_fallback")]
    subprocess.run([*command, *files], check=True, timeout=120)
    page = (tmp_path / "benchmarks.md").read_text()
    assert "| small operators | 2.50 | 5.00 | 1 | 3.54 | 5.00 | 1 |" in page
    assert "| add | 1.25 | 2.50 |" in page
    assert "| sub | failed | failed |" in page
    assert os.uname().nodename not in page
    assert "<svg" in (tmp_path / "_static" / "benchmarks.svg").read_text()
