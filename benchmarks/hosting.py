"""Times hosting many plugins: what autoload and `devhost list` take beside 300 distributions.

Everything is measured twice, with one device plugin and with fifty, of which one is chosen. Only
that one is imported, so that `import torch` should take the same.
"""

from __future__ import annotations

import itertools
import os
import statistics
import string
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import import_time

if TYPE_CHECKING:
    from collections.abc import Callable

DISTRIBUTIONS = 300
PLUGINS = (1, 50)
HOOKS = """
from types import SimpleNamespace
from devhost import DeviceInfo, ProbeResult, hookimpl

@hookimpl
def devhost_device():
    return DeviceInfo(name="{name}", description="One of many", simulated=True)

@hookimpl
def devhost_probe():
    return ProbeResult(available=True, devices=("{name}",))

@hookimpl
def devhost_kernels(registry):
    pass

@hookimpl
def devhost_runtime():
    return SimpleNamespace(
        device_count=lambda: 1,
        current_device=lambda: 0,
        set_device=lambda index: None,
        exchange_device=lambda index: 0,
        synchronize=lambda index: None,
        init=lambda: None,
        is_in_bad_fork=lambda: False,
        get_device_properties=lambda index: SimpleNamespace(name="{name}", total_memory=0),
    )
"""


@dataclass(frozen=True)
class Hosting:
    """Medians in seconds by the number of device plugins, of that many distributions in all."""

    distributions: int
    autoload: dict[int, float]
    list_command: dict[int, float]


def _install(folder: Path, name: str, entry_points: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


def _names(count: int) -> list[str]:
    pairs = itertools.product(string.ascii_lowercase, repeat=2)
    return [f"bench_{a}{b}" for a, b in itertools.islice(pairs, count)]


def fill(folder: Path, plugins: int) -> None:
    """Put distributions into an empty folder, this many of them with a device plugin."""
    for name in _names(plugins):
        _install(folder, name, f"[devhost.devices]\n{name} = {name}_hooks\n")
        (folder / f"{name}_hooks.py").write_text(HOOKS.format(name=name))
    for index in range(DISTRIBUTIONS - plugins):
        _install(folder, f"other_{index}", f"[console_scripts]\nother-{index} = other:main\n")


def measure(rounds: int, on_round: Callable[[], None]) -> Hosting:
    """Run an import and a `devhost list` per number of plugins and round.

    Raises:
        subprocess.CalledProcessError: An interpreter failed; its messages are on stderr.
    """
    autoload: dict[int, list[float]] = {plugins: [] for plugins in PLUGINS}
    listing: dict[int, list[float]] = {plugins: [] for plugins in PLUGINS}
    with tempfile.TemporaryDirectory() as root:
        for plugins in PLUGINS:
            folder = Path(root, str(plugins))
            folder.mkdir()
            fill(folder, plugins)
        for _ in range(rounds + 1):  # the first fills the disk cache and compiles
            for plugins in PLUGINS:
                path = os.pathsep.join(
                    filter(None, (str(Path(root, str(plugins))), os.environ.get("PYTHONPATH")))
                )
                choice = {"PYTHONPATH": path, "DEVHOST_DEVICE": _names(1)[0]}
                steps, _ = import_time.phases(**choice)
                autoload[plugins].append(sum(steps.values()))
                started = time.perf_counter()
                import_time.run(import_time.LIST, **choice)
                listing[plugins].append(time.perf_counter() - started)
            on_round()
    return Hosting(
        DISTRIBUTIONS,
        {plugins: statistics.median(taken[1:]) for plugins, taken in autoload.items()},
        {plugins: statistics.median(taken[1:]) for plugins, taken in listing.items()},
    )
