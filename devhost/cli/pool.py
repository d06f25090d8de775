"""Many child processes, of which only a few run at a time."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from devhost.cli.processes import NO_AUTOLOAD, Child

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_POLL_SECONDS = 0.02


class Job(NamedTuple):
    """What one child is to do.

    Attributes:
        request: See ``devhost.cli.child.main``.
        environ: Environment variables that it gets beside those of this process.
    """

    request: dict[str, Any]
    environ: Mapping[str, str] = NO_AUTOLOAD


class Outcome(NamedTuple):
    """What came of it.

    Attributes:
        result: The child's result; None if it did not get that far.
        failure: Why it did not, one clause; empty if it did.
        seconds: How long it ran.
    """

    result: dict[str, Any] | None
    failure: str
    seconds: float


def run_all(
    jobs: Sequence[Job], timeout: float, on_end: Callable[[int], None] | None = None
) -> list[Outcome]:
    """Run a child for each job, as many at a time as there are processors.

    Args:
        jobs: What to do.
        timeout: How many seconds each child may take; one that takes longer is killed.
        on_end: Called whenever one has ended, with the number of those that have.

    Returns:
        One outcome per job, in their order.
    """
    outcomes: dict[int, Outcome] = {}
    running: dict[int, tuple[Child, float]] = {}
    waiting = list(enumerate(jobs))
    with contextlib.ExitStack() as stack:  # kills the rest if the user interrupts
        while waiting or running:
            while waiting and len(running) < (os.cpu_count() or 1):
                index, job = waiting.pop(0)
                child = stack.enter_context(Child(job.request, job.environ))
                running[index] = (child, time.monotonic())
            for index, (child, started) in list(running.items()):
                seconds = time.monotonic() - started
                if child.has_ended() or seconds > timeout:
                    outcomes[index] = Outcome(*child.wait(0, timeout), seconds)
                    del running[index]
                    if on_end is not None:
                        on_end(len(outcomes))
            if running:
                time.sleep(_POLL_SECONDS)
    return [outcomes[index] for index in range(len(jobs))]
