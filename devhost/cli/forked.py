"""Child processes that are forked: what this process has imported is there already.

Fifty interpreters that start at once keep two processors busy for two seconds, and what they import
first is the same in all of them. A fork takes a few milliseconds, and is as isolated: nothing of
what a plugin does there comes back but the answer.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
from typing import TYPE_CHECKING, Any

from devhost.cli import child
from devhost.cli.processes import Child

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devhost.cli.processes import Process


class ForkedChild(Child):
    """A child process forked off this one, which must have no other thread.

    Args:
        request: See ``devhost.cli.child.main``.
        environ: Environment variables that it gets beside those of this process.
    """

    def _start(self, request: dict[str, Any], environ: Mapping[str, str]) -> Process:
        return _ForkedProcess(self._run, request, environ)

    def _run(self, request: dict[str, Any], environ: Mapping[str, str]) -> None:
        # All that subprocess.Popen is asked for in the other kind of child.
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(self._output.fileno(), 1)
        os.dup2(self._errors.fileno(), 2)
        os.environ.update(environ)
        child.main(request)


class _ForkedProcess:
    """A process of multiprocessing with the methods of one of subprocess."""

    def __init__(self, target: Any, *arguments: Any) -> None:
        self._process = multiprocessing.get_context("fork").Process(target=target, args=arguments)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None  # it has been started
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired("fork", timeout or 0.0)
        return status
