"""Checks of what is installed side by side: names given twice, copies, damaged metadata."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from devhost.cli.findings import error, ok, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devhost.cli.findings import Finding
    from devhost.cli.inventory import Inventory
    from devhost.discovery import InstalledPlugin


def conflict_findings(inventory: Inventory) -> Iterator[Finding]:
    """Yield what is in the way of what; one good finding if nothing is."""
    faults = [*_same_name(inventory), *_shadowed(inventory), *_unreadable(inventory)]
    if not faults:
        count = len(inventory.devices)
        installed = "1 device plugin" if count == 1 else f"{count} device plugins"
        faults.append(ok("conflict", "", f"none: {installed}, each name and distribution once"))
    yield from faults


def _same_name(inventory: Inventory) -> Iterator[Finding]:
    by_name: dict[str, list[InstalledPlugin]] = collections.defaultdict(list)
    for plugin in inventory.devices:
        by_name[plugin.name].append(plugin)
    for name, plugins in by_name.items():
        if len(plugins) > 1:
            owners = " and ".join(f"{p.distribution} {p.version} ({p.location})" for p in plugins)
            yield warning(
                "conflict",
                name,
                f"{len(plugins)} plugins have a device named '{name}': {owners}",
                "Uninstall all but one, or choose one by the name of its distribution",
            )


def _shadowed(inventory: Inventory) -> Iterator[Finding]:
    for plugin, hidden_by in inventory.shadowed:
        yield warning(
            "conflict",
            plugin.name,
            f"{plugin.distribution} {plugin.version} in {plugin.location} is hidden by the copy in "
            f"{hidden_by}, which comes first on sys.path",
            "Uninstall the copy that you do not mean, or take its folder off sys.path",
        )


def _unreadable(inventory: Inventory) -> Iterator[Finding]:
    for distribution, location, problem in inventory.unreadable:
        yield error(
            "conflict",
            distribution,
            f"the entry points of {distribution} in {location} cannot be read, which breaks "
            f"`import torch`: {problem}",
            f"Reinstall {distribution}, or delete its metadata folder",
        )
