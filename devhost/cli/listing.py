"""`devhost list`: what is installed, in which state, and what `import torch` makes of it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, TypedDict

import devhost
from devhost.cli.inventory import take_inventory
from devhost.cli.processes import Child
from devhost.errors import SelectionError, one_line
from devhost.remedies import python_problem
from devhost.selection import Selection, select

if TYPE_CHECKING:
    from collections.abc import Callable

    from devhost.cli.inventory import Inventory
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


class Choice(TypedDict):
    """What `import torch` does."""

    device: str | None
    reason: str
    autoload: bool


class Report(TypedDict):
    """Everything that `devhost list` shows."""

    schema_version: int
    devhost: str
    python: str
    torch: str | None
    selection: Choice
    plugins: list[Plugin]


def make_report(timeout: float, while_waiting: Callable[[], None]) -> Report:
    """Look at every installed plugin.

    Args:
        timeout: How many seconds each plugin may take.
        while_waiting: Called while the plugins' processes are running.
    """
    inventory = take_inventory()
    torch_version = _torch_version()
    started = time.monotonic()
    rows: list[Plugin] = []
    with contextlib.ExitStack() as stack:
        children: list[Child] = []
        for plugin in inventory.devices:
            request = {"name": plugin.name, "value": plugin.value, "torch": torch_version}
            children.append(stack.enter_context(Child({"inspect": request})))
        while_waiting()
        selection = _select(inventory, timeout)
        for plugin, child in zip(inventory.devices, children, strict=True):
            answer = child.wait(started + timeout - time.monotonic(), timeout)
            result = answer.result if answer.result is not None else {"error": answer.failure}
            rows.append(_row(plugin, result))

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
            # torch autoloads for exactly this value.
            "autoload": os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1",
        },
        "plugins": rows,
    }


def print_json(report: Report) -> None:
    """Print ``report`` as JSON; the format is documented in ``list.schema.json``."""
    print(json.dumps(report, indent=2))


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
    reason = ""
    if "shadowed" in result:
        status, reason = "shadowed", result["shadowed"]
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
    if result.get("imports_torch"):
        note = "its hook module imports torch, which makes this command slow: import it in hooks"
        reason = f"{reason}; {note}" if reason else note
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


def _select(inventory: Inventory, timeout: float) -> Selection:
    def ask_site() -> object:
        candidates = [
            {"name": p.name, "distribution": p.distribution, "version": p.version}
            for p in inventory.devices
        ]
        extensions = [(p.name, p.value) for p in inventory.extensions]
        with Child({"select": {"extensions": extensions, "candidates": candidates}}) as child:
            result, failure = child.wait(timeout, timeout)
        if result is None or "error" in result:
            problem = failure if result is None else result["error"]
            raise SelectionError(f"an extension's devhost_select failed: {problem}")
        answer: object = result["choice"]
        return answer

    try:
        return select(inventory.devices, os.environ, ask_site if inventory.extensions else None)
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


def _torch_version() -> str | None:
    import importlib_metadata

    try:
        return importlib_metadata.version("torch")
    except importlib_metadata.PackageNotFoundError:
        return None
