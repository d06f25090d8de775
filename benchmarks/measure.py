"""Times a case on a device and on the CPU, alternately, and compares the two.

Each side keeps its fastest round: whatever else the machine does can only make a round slower. The
sides take turns, so that a change of clock speed or load meets both alike.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.utils.benchmark import Timer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cases import Case

CPU = torch.device("cpu")

ROUND_SECONDS = 0.02
"""Least time that one round lasts, so that reading the clock and synchronizing do not count."""


@dataclass(frozen=True)
class Comparison:
    """The fastest call on both sides in seconds, or the error that the device gave instead."""

    case: Case
    device_seconds: float = math.nan
    cpu_seconds: float = math.nan
    error: str | None = None

    @property
    def ratio(self) -> float:
        """Time on the device divided by time on the CPU; NaN if it failed."""
        return self.device_seconds / self.cpu_seconds


class _Side:
    """A case prepared on one device."""

    def __init__(self, case: Case, device: torch.device) -> None:
        # Timer synchronizes the accelerator when it reads the clock, and uses one thread.
        self._timer = Timer("call()", globals={"call": case.prepare(device)})
        calibration = self._timer.blocked_autorange(min_run_time=ROUND_SECONDS)
        self._calls = max(1, math.ceil(ROUND_SECONDS / calibration.mean))
        self.fastest = math.inf

    def run(self) -> None:
        self.fastest = min(self.fastest, self._timer.timeit(self._calls).mean)


def compare(case: Case, device: torch.device, rounds: int) -> Comparison:
    """Time the case in `rounds` rounds on each side.

    An error on the device is part of the result. One on the CPU is raised: the case is wrong.
    """
    cpu = _Side(case, CPU)
    try:
        side = _Side(case, device)
        for _ in range(rounds):
            cpu.run()
            side.run()
    except Exception as error:
        first_line = str(error).partition("\n")[0]
        message = textwrap.shorten(first_line, 160, placeholder=" ...")
        return Comparison(case, error=f"{type(error).__name__}: {message}")
    return Comparison(case, side.fastest, cpu.fastest)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean, the mean that treats 2x and 1/2x alike; NaN of nothing."""
    logarithms = [math.log(value) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else math.nan
