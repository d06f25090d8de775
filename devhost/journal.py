"""The journal of activation: what became of every plugin, written step by step.

It is written on the path of every `import torch`, so it is made of plain classes. ``records`` turns
it into the frozen types that ``devhost.status()`` returns, when somebody asks.
"""

from __future__ import annotations

import contextlib
import enum
import time
import traceback
from typing import TYPE_CHECKING

from devhost.errors import exception_text, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devhost.discovery import Installed, InstalledPlugin


class State(enum.Enum):
    """How far a plugin has come. The first six follow each other, the others end the path."""

    DISCOVERED = "discovered"
    SELECTED = "selected"
    IMPORTED = "imported"
    CHECKED = "checked"
    AVAILABLE = "available"
    ACTIVATED = "activated"

    NOT_SELECTED = "not selected"
    DISABLED = "disabled"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"

    def __str__(self) -> str:
        return self.value


class PluginRecord:
    """The path of one plugin, written step by step.

    Args:
        plugin: The plugin it is about.
    """

    def __init__(self, plugin: InstalledPlugin) -> None:
        self.plugin = plugin
        self.state = State.DISCOVERED
        self.reason = ""
        self.steps: list[tuple[str, float]] = []
        self.traceback: str | None = None

    @contextlib.contextmanager
    def step(self, name: str, state: State | None = None) -> Iterator[None]:
        """Record how long the block took, and that it led to ``state`` unless it raises."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.steps.append((name, time.perf_counter() - start))
        if state is not None:
            self.state = state

    def end(self, state: State, reason: str) -> None:
        """Record that the path ends in ``state``."""
        self.state, self.reason = state, reason

    def fail(self, reason: str, error: BaseException) -> None:
        """Record that ``error`` ends the path, with its traceback."""
        self.end(State.FAILED, reason)
        self.traceback = traceback_text(error)


class Journal:
    """Everything recorded in this process.

    Attributes:
        device: Name of the device that devhost has registered, or None.
        choice: Why that device was chosen, or why none was.
        plugins: One record per installed device plugin, sorted.
        extensions: One record per installed extension, sorted.
        seconds: Time spent in devhost and in the plugins.
    """

    def __init__(self) -> None:
        self.device: str | None = None
        self.choice = ""
        self.plugins: list[PluginRecord] = []
        self.extensions: list[PluginRecord] = []
        self.seconds = 0.0

    def open(self, installed: Installed) -> None:
        """Add a record for everything that is installed; finding it is the first step of each."""
        self.plugins = [PluginRecord(plugin) for plugin in installed.devices]
        self.extensions = [PluginRecord(plugin) for plugin in installed.extensions]
        for record in (*self.plugins, *self.extensions):
            record.steps.append(("discover", installed.seconds))

    def undecided(self) -> list[PluginRecord]:
        """Return the records of the device plugins about which nothing is decided yet."""
        return [record for record in self.plugins if record.state is State.DISCOVERED]


current: Journal | None = None
"""The journal of the last attempt in this process; None if there has been none."""


def keep(journal: Journal) -> None:
    """Make ``journal`` the current one."""
    global current
    current = journal


def why_missing(name: str) -> str:
    """Return why the device ``name`` is not there, or nothing if no plugin has that name."""
    for record in current.plugins if current is not None else ():
        if record.plugin.name == name:
            return one_line(f"its plugin is installed, but {record.state}: {record.reason}")
    return ""


def traceback_text(error: BaseException) -> str:
    """Return the traceback of ``error`` as text, however odd the exception is."""
    try:
        return "".join(traceback.format_exception(error))
    except KeyboardInterrupt:
        raise
    except BaseException:  # an exception whose own attributes raise
        return exception_text(error)
