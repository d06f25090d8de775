"""Times fresh interpreters: what autoload adds to `import torch`, where, and `devhost list`.

An import takes over a second and varies by more than autoload costs, so with and without are run in
pairs, and the median of the differences is reported. Where the time goes is told by devhost's own
status, step by step, and by `python -X importtime` for the modules of devhost and pluggy. Loading a
plugin's native modules, which the host cannot change, is timed in the import system and taken out.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

IMPORT = ["-c", "import torch"]
REPORT = """
import json, sys, time
from importlib.machinery import ExtensionFileLoader

native = {}
def timed(original):
    def load(self, argument):
        start = time.perf_counter()
        try:
            return original(self, argument)
        finally:
            native[self.name] = native.get(self.name, 0.0) + time.perf_counter() - start
    return load
for method in ("create_module", "exec_module"):
    setattr(ExtensionFileLoader, method, timed(getattr(ExtensionFileLoader, method)))

import torch
modules = [name for name in sys.modules if name.partition(".")[0] in ("devhost", "pluggy")]
import devhost
status = devhost.status()
active = [plugin for plugin in status.plugins if plugin.name == status.device]
packages = tuple(plugin.module.partition(".")[0] + "." for plugin in active)
print(json.dumps({
    "seconds": status.seconds,
    "steps": [(step.name, step.seconds) for plugin in active for step in plugin.steps],
    "native": sum(seconds for name, seconds in native.items() if name.startswith(packages)),
    "modules": modules,
}))
"""
IMPORTED = re.compile(r"^import time: +(\d+) \| +\d+ \| +(\S+)$", re.MULTILINE)
MODULES = "importing devhost and pluggy"
REST = "the rest"
LIST = ["-m", "devhost", "list"]


@dataclass(frozen=True)
class StartUp:
    """Medians in seconds: of each kind of run, and of the difference within a pair.

    ``phases`` has the steps of autoload, ``native`` is what loading the plugin's native modules
    takes in them, and ``host`` is their sum without that.
    """

    with_autoload: float
    without_autoload: float
    autoload: float
    list_command: float
    phases: dict[str, float]
    host: float
    native: float


def run(arguments: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run an interpreter away from the source tree, so that the installed packages are measured.

    Raises:
        subprocess.CalledProcessError: It failed; its messages are on stderr.
    """
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | variables,
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if "-X" in arguments else None,
        text=True,
        check=True,
    )


def _seconds(arguments: Sequence[str], *, autoload: bool) -> float:
    started = time.perf_counter()
    run(arguments, TORCH_DEVICE_BACKEND_AUTOLOAD=str(int(autoload)))
    return time.perf_counter() - started


def phases(**variables: str) -> tuple[dict[str, float], float]:
    """Return what autoload took in one import, step by step, and loading native modules in it.

    Args:
        variables: Environment variables of the interpreter.
    """
    done = run(["-X", "importtime", "-c", REPORT], TORCH_DEVICE_BACKEND_AUTOLOAD="1", **variables)
    report = json.loads(done.stdout)
    imported = {name: int(micros) / 1e6 for micros, name in IMPORTED.findall(done.stderr)}
    steps = dict(report["steps"])
    steps[MODULES] = sum(imported.get(name, 0.0) for name in report["modules"])
    steps[REST] = report["seconds"] - sum(steps.values())
    return steps, report["native"]


def measure(pairs: int, on_pair: Callable[[], None]) -> StartUp:
    """Run `pairs` pairs of imports and as many `devhost list`; call `on_pair` after each.

    Raises:
        subprocess.CalledProcessError: an interpreter failed; its messages are on stderr.
    """
    _seconds(IMPORT, autoload=True)  # fills the disk cache
    on, off, listing, reports = [], [], [], []
    for _ in range(pairs):
        on.append(_seconds(IMPORT, autoload=True))
        off.append(_seconds(IMPORT, autoload=False))
        listing.append(_seconds(LIST, autoload=True))
        reports.append(phases())
        on_pair()
    steps = reports[0][0]
    return StartUp(
        statistics.median(on),
        statistics.median(off),
        statistics.median(a - b for a, b in zip(on, off, strict=True)),
        statistics.median(listing),
        {name: statistics.median(taken[name] for taken, _ in reports) for name in steps},
        statistics.median(sum(taken.values()) - native for taken, native in reports),
        statistics.median(native for _, native in reports),
    )
