"""Times fresh interpreters: what autoload adds to `import torch`, and `devhost list`.

An import takes over a second and varies by more than autoload costs, so with and without are run in
pairs, and the median of the differences is reported.
"""

from __future__ import annotations

import os
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
LIST = ["-m", "devhost", "list"]


@dataclass(frozen=True)
class StartUp:
    """Medians in seconds: of each kind of run, and of the difference within a pair."""

    with_autoload: float
    without_autoload: float
    autoload: float
    list_command: float


def _seconds(arguments: Sequence[str], *, autoload: bool) -> float:
    # Away from the source tree, so that the installed packages are measured.
    environment = os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": str(int(autoload))}
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=Path(__file__).parent,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - started


def measure(pairs: int, on_pair: Callable[[], None]) -> StartUp:
    """Run `pairs` pairs of imports and as many `devhost list`; call `on_pair` after each.

    Raises:
        subprocess.CalledProcessError: an interpreter failed; its messages are on stderr.
    """
    _seconds(IMPORT, autoload=True)  # fills the disk cache
    on, off, listing = [], [], []
    for _ in range(pairs):
        on.append(_seconds(IMPORT, autoload=True))
        off.append(_seconds(IMPORT, autoload=False))
        listing.append(_seconds(LIST, autoload=True))
        on_pair()
    return StartUp(
        statistics.median(on),
        statistics.median(off),
        statistics.median(a - b for a, b in zip(on, off, strict=True)),
        statistics.median(listing),
    )
