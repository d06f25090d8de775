"""`devhost info NAME`: everything about one plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from devhost.cli.alone import identity
from devhost.cli.inventory import take_inventory
from devhost.cli.pool import Job, run_all
from devhost.discovery import nearest_names
from devhost.errors import SelectionError, one_line
from devhost.journal import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devhost.discovery import InstalledPlugin

SCHEMA_VERSION = 1
"""Version of the JSON format; it changes when something that was there changes or goes away."""


class Report(TypedDict):
    """Everything about one plugin. ``info.schema.json`` describes every field.

    What could not be found out, because the plugin failed before or is not available, is None.
    """

    schema_version: int
    name: str
    distribution: str
    version: str
    location: str
    entry_point: str
    state: str
    reason: str
    traceback: str
    info: dict[str, Any] | None
    probe: dict[str, Any] | None
    hooks: list[str] | None
    devices: list[dict[str, Any]] | None
    module: dict[str, Any] | None
    kernels: dict[str, int] | None
    seconds: float


def make_report(name: str, timeout: float) -> Report:
    """Activate a plugin in a child process, and describe it.

    Args:
        name: Name of a device or of a distribution.
        timeout: How many seconds the child process may take.

    Raises:
        SelectionError: No plugin has that name, or several have.
    """
    plugin = _find(name, take_inventory().devices)
    (outcome,) = run_all([Job({"trial": "describe", **identity(plugin)})], timeout)
    result = outcome.result or {"state": str(State.FAILED), "reason": outcome.failure}
    if "error" in result:
        result = {**result, "state": str(State.FAILED), "reason": result["error"]}
    return {
        "schema_version": SCHEMA_VERSION,
        "name": plugin.name,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "location": plugin.location,
        "entry_point": plugin.value,
        "state": result["state"],
        "reason": one_line(result["reason"]),
        "traceback": result.get("traceback", ""),
        "info": result.get("info"),
        "probe": result.get("probe"),
        "hooks": result.get("hooks"),
        "devices": result.get("devices"),
        "module": result.get("module"),
        "kernels": result.get("kernels"),
        "seconds": round(outcome.seconds, 3),
    }


def _find(name: str, installed: Sequence[InstalledPlugin]) -> InstalledPlugin:
    matches = [plugin for plugin in installed if plugin.is_called(name)]
    if len(matches) == 1:
        return matches[0]
    listed = ", ".join(f"{p.name} ({p.distribution})" for p in matches or installed) or "none"
    if matches:
        raise SelectionError(f"'{name}' fits {len(matches)} plugins: {listed}")
    raise SelectionError(
        f"no device plugin '{name}' is installed; installed: {listed}."
        f"{nearest_names([name], installed)}"
    )
