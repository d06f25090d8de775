"""`devhost list`: what is installed, in which state, and what `import torch` makes of it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, Any, TypedDict

import devhost
from devhost import torch_compat
from devhost.blocking import block
from devhost.cli.forked import ForkedChild
from devhost.cli.inventory import installed_torch, take_inventory
from devhost.errors import SelectionError, one_line
from devhost.remedies import python_problem
from devhost.selection import Selection, select

if TYPE_CHECKING:
    from collections.abc import Callable

    from devhost.blocking import Blocked
    from devhost.cli.inventory import Inventory
    from devhost.cli.processes import Child
    from devhost.discovery import InstalledPlugin

SCHEMA_VERSION = 1
"""Version of the JSON format; it changes when something that was there changes or goes away."""


class Plugin(TypedDict):
    """One row. The JSON Schema in ``list.schema.json`` describes every field."""

    name: str
    distribution: str
    version: str
    location: str
    entry_point: str
    status: str
    active: bool
    reason: str
    devices: list[str]
    description: str
    simulated: bool | None
    seconds: float | None


class ForeignBackend(TypedDict):
    """Another package that torch calls at the end of `import torch`."""

    name: str
    distribution: str
    version: str
    location: str
    entry_point: str


class Choice(TypedDict):
    """What `import torch` does."""

    device: str | None
    reason: str
    autoload: bool
    notes: list[str]


class Report(TypedDict):
    """Everything that `devhost list` shows."""

    schema_version: int
    devhost: str
    python: str
    torch: str | None
    selection: Choice
    plugins: list[Plugin]
    foreign_backends: list[ForeignBackend]
    extension_failures: list[str]


def make_report(timeout: float, while_waiting: Callable[[], None]) -> Report:
    """Look at every installed plugin.

    Args:
        timeout: How many seconds each plugin may take.
        while_waiting: Called while the plugins' processes are running.
    """
    inventory = take_inventory()
    blocked = block(inventory.devices, inventory.extensions, os.environ)
    extensions = tuple(e for e in inventory.extensions if e not in blocked.plugins)
    torch_version = installed_torch()
    rows: list[Plugin] = []
    failures: dict[str, None] = {}  # an ordered set: every child meets the same extensions
    with contextlib.ExitStack() as stack:
        children: dict[InstalledPlugin, Child] = {}
        for plugin in inventory.devices:
            if plugin not in blocked.plugins:
                request = {
                    "name": plugin.name,
                    "value": plugin.value,
                    "torch": torch_version,
                    "extensions": extensions,
                }
                children[plugin] = stack.enter_context(ForkedChild({"inspect": request}))
        while_waiting()
        selection = _select(inventory, blocked, extensions, timeout)
        for plugin in inventory.devices:
            if plugin in blocked.plugins:
                rows.append(_row(plugin, {"disabled": blocked.reason}))
                continue
            child = children[plugin]
            answer = child.wait(child.started + timeout - time.monotonic(), timeout)
            result = answer.result if answer.result is not None else {"error": answer.failure}
            rows.append(_row(plugin, result))
            failures |= dict.fromkeys(result.get("extension_failures", ()))

    active = _active(selection, inventory.devices, rows)
    if active is not None:
        active["active"] = True
    for copy in inventory.shadowed:
        reason = f"hidden by the copy in {copy.hidden_by}, which comes first on sys.path"
        rows.append(_row(copy.plugin, {"shadowed": reason}))
    rows.sort(key=lambda row: (row["name"], row["distribution"], row["location"]))
    rows += [
        {
            **_EMPTY,
            "distribution": distribution,
            "location": location,
            "status": "failed",
            "reason": f"its entry points cannot be read, which breaks `import torch`: {error}; "
            "reinstall it",
        }
        for distribution, location, error in inventory.unreadable
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "devhost": devhost.__version__,
        "python": sys.version.split()[0],
        "torch": torch_version,
        "selection": {
            "device": active["name"] if active is not None else None,
            "reason": selection.reason,
            "autoload": torch_compat.autoload_is_enabled(os.environ),
            "notes": _notes(inventory, blocked),
        },
        "plugins": rows,
        "foreign_backends": [
            {
                "name": backend.name,
                "distribution": backend.distribution,
                "version": backend.version,
                "location": backend.location,
                "entry_point": backend.value,
            }
            for backend in inventory.foreign_backends
        ],
        "extension_failures": list(failures),
    }


_EMPTY: Plugin = {
    "name": "",
    "distribution": "",
    "version": "unknown",
    "location": "",
    "entry_point": "",
    "status": "failed",
    "active": False,
    "reason": "",
    "devices": [],
    "description": "",
    "simulated": None,
    "seconds": None,
}


def _row(plugin: InstalledPlugin, result: dict[str, Any]) -> Plugin:
    # Brings pluggy along: imported here, while the plugins' processes are running.
    from devhost import checks

    reason = ""
    if "shadowed" in result:
        status, reason = "shadowed", result["shadowed"]
    elif "disabled" in result:
        status, reason = "disabled", result["disabled"]
    elif "error" in result:
        status, reason = "failed", result["error"]
    elif "problems" in result:
        status, reason = "failed", "; ".join(result["problems"])
    elif result["available"]:
        status = "available"
    else:
        status, reason = "unavailable", result["reason"]
    if status == "failed":
        reason = "; ".join(filter(None, (reason, python_problem(plugin))))
    notes = list(checks.ranking_problems(plugin, result.get("simulated"), result.get("priority")))
    if result.get("imports_torch"):
        notes.append(
            "its hook module imports torch, which makes this command slow: import it in hooks"
        )
    reason = "; ".join([reason, *notes] if reason else notes)
    return {
        "name": plugin.name,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "location": plugin.location,
        "entry_point": plugin.value,
        "status": status,
        "active": False,
        "reason": one_line(reason),
        "devices": result.get("devices", []),
        "description": one_line(result.get("description", "")),
        "simulated": result.get("simulated"),
        "seconds": result.get("seconds"),
    }


def _notes(inventory: Inventory, blocked: Blocked) -> list[str]:
    """Return what no row shows: extensions that are kept out, and names that fit nothing."""
    notes = [
        f"extension '{plugin.name}' ({plugin.distribution} {plugin.version}) is disabled: "
        f"{blocked.reason}"
        for plugin in inventory.extensions
        if plugin in blocked.plugins
    ]
    return [*notes, blocked.problem] if blocked.problem else notes


def _select(
    inventory: Inventory,
    blocked: Blocked,
    extensions: tuple[InstalledPlugin, ...],
    timeout: float,
) -> Selection:
    def ask_site() -> object:
        candidates = [
            {"name": p.name, "distribution": p.distribution, "version": p.version}
            for p in inventory.devices
            if p not in blocked.plugins
        ]
        request = {"extensions": extensions, "candidates": candidates}
        with ForkedChild({"select": request}) as child:
            result, failure = child.wait(timeout, timeout)
        if result is None:
            raise SelectionError(f"asking the extensions {failure}")
        if "error" in result:
            raise SelectionError(result["error"])
        answer: object = result["choice"]
        return answer

    try:
        return select(inventory.devices, os.environ, ask_site if extensions else None, blocked)
    except SelectionError as error:
        return Selection((), str(error))


def _active(
    selection: Selection, installed: tuple[InstalledPlugin, ...], rows: list[Plugin]
) -> Plugin | None:
    """Return the row that gets the slot: the first available, else the first unavailable."""
    row_of = dict(zip(installed, rows, strict=True))
    chosen = [row_of[plugin] for plugin in selection.plugins]
    for status in ("available", "unavailable"):
        for row in chosen:
            if row["status"] == status:
                return row
    return None
