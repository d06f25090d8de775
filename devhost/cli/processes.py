"""Child processes: started side by side, bounded in time, read to the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from devhost.torch_compat import AUTOLOAD_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Send: TypeAlias = Callable[[dict[str, Any]], None]
    """Reports a message from a child to its parent; see ``devhost.cli.child``."""

NO_AUTOLOAD = {AUTOLOAD_VARIABLE: "0"}
"""A plugin that imports torch by itself must not start devhost once more."""

# The child takes over sys.path, so that it finds what the parent found, however it was started.
_BOOT = """\
import json, sys
request = json.loads(sys.argv.pop())
sys.path[:] = request["path"]
from devhost.cli.child import main
main(request)
"""


class Answer(NamedTuple):
    """What came back from a child.

    Attributes:
        result: Its result; None if it did not get that far.
        failure: Why it did not, one clause; empty if it did.
    """

    result: dict[str, Any] | None
    failure: str


class Process(Protocol):
    """What is needed of a process that has been started; as in ``subprocess.Popen``."""

    @property
    def pid(self) -> int:
        """Its id, which is also that of the group that it is the head of."""

    @property
    def returncode(self) -> int | Any:
        """Its exit status, or a signal's number times -1; None if it is running."""

    def poll(self) -> int | None:
        """Return the same, looked up anew."""

    def wait(self, timeout: float | None = None) -> int:
        """Return the same once it has ended, or raise subprocess.TimeoutExpired."""


class Child:
    """A running child process; a context manager that leaves neither it nor its files behind.

    Args:
        request: See ``devhost.cli.child.main``.
        environ: Environment variables that it gets beside those of this process.

    Attributes:
        started: When it was started, as ``time.monotonic()`` tells it.
    """

    def __init__(self, request: dict[str, Any], environ: Mapping[str, str] = NO_AUTOLOAD) -> None:
        # Files, not pipes: a pipe fills up, and then a child waits for being read that waits for
        # its turn behind one that hangs.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.started = time.monotonic()
        self._process = self._start(request, environ)

    def _start(self, request: dict[str, Any], environ: Mapping[str, str]) -> Process:
        return subprocess.Popen(
            [sys.executable, "-c", _BOOT, json.dumps({**request, "path": sys.path})],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._errors,
            env={**os.environ, **environ},
            # Its own group, so that what it starts can be ended with it.
            start_new_session=True,
        )

    def has_ended(self) -> bool:
        """Return whether the process is no longer running."""
        return self._process.poll() is not None

    def wait(self, seconds: float, limit: float) -> Answer:
        """Wait for the child to end, and return what it said.

        Args:
            seconds: How long to wait from now.
            limit: How long the child was allowed to take in all, for the message.
        """
        timed_out = False
        try:
            self._process.wait(timeout=max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            timed_out = True
            self._kill()
        stage, result = "starting", None
        for line in _read(self._output).splitlines():
            message = json.loads(line)
            stage = message.get("stage", stage)
            result = message.get("result", result)
        if result is not None:
            return Answer(result, "")
        last_words = _read(self._errors).strip().rpartition("\n")[2].strip()
        said = f" (last line on stderr: {last_words})" if last_words else ""
        if timed_out:
            return Answer(None, f"did not finish within {limit:g} s, while {stage}{said}")
        return Answer(None, f"{_ending(self._process.returncode)} while {stage}{said}")

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._kill()
        self._output.close()
        self._errors.close()

    def _kill(self) -> None:
        if self._process.poll() is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:  # forked a moment ago, and not yet the head of its group
                os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _ending(status: int) -> str:
    if status >= 0:
        return f"ended the process with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"crashed with {name}"
