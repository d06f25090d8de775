"""State of the process that loading a plugin must leave alone: watched, put back and reported.

`import torch` runs a plugin's code in every program, also in those that never use its device. What
that code does to the working directory or to the default dtype changes results far away from it, so
it is undone in any case. Where a driver may need a change, as of an environment variable, a plugin
that works keeps it, and one that has failed leaves no trace.

Only what Python knows can be watched: not the handlers and threads of native code, nor variables
set with C's ``setenv``. A thread of the program that changes one of these in the same milliseconds
is taken for the plugin.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

from devhost import torch_compat
from devhost.errors import exception_text

if TYPE_CHECKING:
    from collections.abc import Callable


class Snapshot:
    """The state at the time when it is made. Takes some tens of microseconds."""

    def __init__(self) -> None:
        self._values = [setting.read() for setting in _SETTINGS]
        self._threads = threading.enumerate()

    def put_back(self, *, failed: bool) -> list[str]:
        """Undo what has changed since.

        Args:
            failed: Whether the plugin has failed. Of one that works, what its driver may need
                stays.

        Returns:
            What has changed and was put back, or could not be; one clause each.
        """
        changes = []
        for setting, old in zip(_SETTINGS, self._values, strict=True):
            if setting.driver_may_need and not failed:
                continue
            new = setting.read()
            if new == old:
                continue
            change = setting.what + _changed_names(old, new)
            try:
                setting.write(old)
                change += " (put back)"
            except Exception as error:  # a folder that is gone, or signals outside the main thread
                change += f" (which cannot be put back: {exception_text(error)})"
            changes.append(change)
        started = [thread.name for thread in threading.enumerate() if thread not in self._threads]
        if started:
            changes.append(f"the running threads: started {', '.join(started)} (which go on)")
        return changes


def _changed_names(old: object, new: object) -> str:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return ""
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return f" {', '.join(names)}"


class _Setting:
    """Something that a process has one of.

    Args:
        what: What messages call it; followed by the names that differ, if its value is a dict.
        read: Returns a value that later changes do not reach.
        write: Makes a value that was read the current one again.
        driver_may_need: Whether a plugin that works keeps its change.
    """

    def __init__(
        self,
        what: str,
        read: Callable[[], Any],
        write: Callable[[Any], None],
        *,
        driver_may_need: bool = False,
    ) -> None:
        self.what = what
        self.read = read
        self.write = write
        self.driver_may_need = driver_may_need


def _set_environment(variables: dict[str, str]) -> None:
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)


def _set_path(entries: list[str]) -> None:
    sys.path[:] = entries


def _set_filters(filters: list[Any]) -> None:
    warnings.resetwarnings()  # makes the warnings module forget what it has decided so far
    warnings.filters[:] = filters  # type: ignore[index]


def _working_directory() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - a Path costs ten times as much
    except OSError:  # deleted, before the plugin or by it
        return None


def _change_directory(path: str | None) -> None:
    if path is None:
        raise FileNotFoundError("it had been deleted")
    os.chdir(path)


# Those that programs handle; asking for all of them takes three times as long.
_HANDLED = (
    "SIGINT SIGTERM SIGHUP SIGQUIT SIGPIPE SIGCHLD SIGALRM SIGUSR1 SIGUSR2 SIGABRT SIGSEGV SIGBUS"
)
_SIGNALS = {number.name: number for number in signal.Signals if number.name in _HANDLED}


def _handlers() -> dict[str, Any]:
    return {name: signal.getsignal(number) for name, number in _SIGNALS.items()}


def _set_handlers(handlers: dict[str, Any]) -> None:
    for name, handler in handlers.items():
        if signal.getsignal(_SIGNALS[name]) != handler:
            signal.signal(_SIGNALS[name], handler)


def _root_logger() -> tuple[int, list[logging.Handler]]:
    return logging.root.level, logging.root.handlers.copy()


def _set_root_logger(value: tuple[int, list[logging.Handler]]) -> None:
    logging.root.setLevel(value[0])
    logging.root.handlers[:] = value[1]


# Functions, where a value is bound to its name anew: as sys.path and the filters may be.
_SETTINGS = (
    _Setting("the environment variables", os.environ.copy, _set_environment, driver_may_need=True),
    _Setting("sys.path", lambda: sys.path.copy(), _set_path, driver_may_need=True),
    _Setting(
        "the warning filters",
        lambda: warnings.filters.copy(),  # type: ignore[attr-defined]
        _set_filters,
        driver_may_need=True,
    ),
    _Setting("the working directory", _working_directory, _change_directory),
    _Setting("the handlers of", _handlers, _set_handlers),
    _Setting("the root logger", _root_logger, _set_root_logger),
    _Setting("the default dtype", torch_compat.default_dtype, torch_compat.set_default_dtype),
    _Setting("the default device", torch_compat.default_device, torch_compat.set_default_device),
)
