"""``devhost.status()``: what devhost did in this process, for users to read.

The types are frozen copies of the journal, so that what a user holds does not change under their
hands. Nothing here is imported by `import torch`, unless a plugin asks for the status.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from devhost import journal as journal_module
from devhost.errors import DiscoveryError
from devhost.journal import Journal, State

if TYPE_CHECKING:
    from devhost.journal import PluginRecord


@dataclass(frozen=True)
class Step:
    """One step on a plugin's path.

    Attributes:
        name: What was done: discover, select, import, check, probe, kernels, runtime, rng, amp,
            register.
        seconds: How long it took. For the last step of a failed plugin, until it failed.
    """

    name: str
    seconds: float


@dataclass(frozen=True)
class PluginStatus:
    """What became of one plugin.

    Attributes:
        name: Device name, or name of the extension.
        distribution: Distribution that brings it.
        version: Version of that distribution.
        module: Its hook module.
        location: Folder that the distribution is installed in.
        state: How far it has come.
        reason: Why it is in that state, one sentence; empty where the state says it all.
        steps: The steps taken, in order.
        traceback: Of the exception that stopped it, or None.
    """

    name: str
    distribution: str
    version: str
    module: str
    location: str
    state: State
    reason: str
    steps: tuple[Step, ...]
    traceback: str | None

    def __str__(self) -> str:
        head = f"{self.name}: {self.state} ({self.distribution} {self.version}, {self.location})"
        lines = [f"{head} - {self.reason}" if self.reason else head]
        lines += [f"    {step.name:<10}{step.seconds * 1e3:8.2f} ms" for step in self.steps]
        if self.traceback:
            lines += [f"    {line}" for line in self.traceback.splitlines()]
        return "\n".join(lines)


@dataclass(frozen=True)
class Status:
    """What devhost did in this process. ``print()`` shows it as text.

    Attributes:
        device: Name of the device that devhost registered, available or not; None if there is
            none.
        slot: Name that PyTorch's out-of-tree device has now, ``privateuseone`` if it is unused;
            None if torch has not been imported.
        ran: Whether plugins have been looked for yet, by ``import torch`` or ``devhost.load()``.
        choice: Why that device was chosen, or why none was; one sentence.
        plugins: Every installed device plugin, sorted by name.
        extensions: Every installed extension, sorted by name.
        seconds: Time spent in devhost and in the plugins.
    """

    device: str | None
    slot: str | None
    ran: bool
    choice: str
    plugins: tuple[PluginStatus, ...]
    extensions: tuple[PluginStatus, ...]
    seconds: float

    def __str__(self) -> str:
        lines = [
            f"device: {self.device or 'none'}",
            f"slot: {self.slot or 'torch is not imported'}",
            f"choice: {self.choice}",
            f"time: {self.seconds * 1e3:.2f} ms",
        ]
        for title, entries in (("plugins", self.plugins), ("extensions", self.extensions)):
            if entries:
                lines.append(f"{title}:")
                lines += [f"  {line}" for entry in entries for line in str(entry).splitlines()]
        return "\n".join(lines)


def status() -> Status:
    """Return what devhost did in this process, and why.

    Before plugins have been looked for (``TORCH_DEVICE_BACKEND_AUTOLOAD=0``, or torch not
    imported), the installed plugins are listed with the state "discovered". Imports nothing of a
    plugin, and not torch.
    """
    from devhost.discovery import discover

    if journal_module.current is not None:
        return snapshot(journal_module.current)
    journal = Journal()
    journal.choice = "plugins have not been looked for: `import torch` or devhost.load() does it"
    try:
        journal.open(discover())
    except DiscoveryError as error:
        journal.choice = str(error)
    return snapshot(journal, ran=False)


def snapshot(journal: Journal, *, ran: bool = True) -> Status:
    """Return a frozen copy of ``journal``."""
    return Status(
        device=journal.device,
        slot=_slot(),
        ran=ran,
        choice=journal.choice,
        plugins=tuple(map(_plugin_status, journal.plugins)),
        extensions=tuple(map(_plugin_status, journal.extensions)),
        seconds=journal.seconds,
    )


def _plugin_status(record: PluginRecord) -> PluginStatus:
    plugin = record.plugin
    return PluginStatus(
        name=plugin.name,
        distribution=plugin.distribution,
        version=plugin.version,
        module=plugin.module,
        location=plugin.location,
        state=record.state,
        reason=record.reason,
        steps=tuple(Step(name, seconds) for name, seconds in record.steps),
        traceback=record.traceback,
    )


def _slot() -> str | None:
    if "torch" not in sys.modules:
        return None
    from devhost import torch_compat

    return torch_compat.slot_name()
