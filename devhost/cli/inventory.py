"""Everything that is installed, also what no import would find: copies and damage."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import importlib_metadata

from devhost.discovery import (
    InstalledPlugin,
    device_plugins,
    distribution_name,
    extension_plugins,
    foreign_backends,
    key_of_copies,
)
from devhost.errors import exception_text

if TYPE_CHECKING:
    from collections.abc import Collection


class Shadowed(NamedTuple):
    """A device plugin that no import reaches: another copy of its distribution comes first."""

    plugin: InstalledPlugin
    hidden_by: str


class Unreadable(NamedTuple):
    """A distribution whose entry points cannot be read, which breaks `import torch` itself."""

    distribution: str
    location: str
    error: str


class Inventory(NamedTuple):
    """Everything installed, and what is wrong with how it is.

    Attributes:
        devices: Device plugins.
        extensions: Extensions of devhost.
        foreign_backends: What else torch calls at the end of `import torch`.
        shadowed: Device plugins behind another copy of themselves.
        unreadable: Distributions with damaged metadata.
    """

    devices: tuple[InstalledPlugin, ...]
    extensions: tuple[InstalledPlugin, ...]
    foreign_backends: tuple[InstalledPlugin, ...]
    shadowed: tuple[Shadowed, ...]
    unreadable: tuple[Unreadable, ...]

    def without(self, plugins: Collection[InstalledPlugin]) -> Inventory:
        """Return the same with these device plugins and extensions left out."""
        return self._replace(
            devices=tuple(plugin for plugin in self.devices if plugin not in plugins),
            extensions=tuple(plugin for plugin in self.extensions if plugin not in plugins),
        )


def installed_torch() -> str | None:
    """Return the version of the installed torch; None if there is none, or its metadata is bad."""
    try:
        return importlib_metadata.version("torch")
    except Exception:  # what bad metadata raises differs by reader and version
        return None


def take_inventory() -> Inventory:
    """Return everything that is installed, copies and damage included. Raises nothing."""
    devices: list[InstalledPlugin] = []
    extensions: list[InstalledPlugin] = []
    foreign: list[InstalledPlugin] = []
    shadowed: list[Shadowed] = []
    unreadable: list[Unreadable] = []
    first_copy: dict[str, str] = {}
    for dist in importlib_metadata.distributions():
        location = str(dist.locate_file(""))
        key = key_of_copies(dist)
        hidden_by = first_copy.get(key)
        first_copy.setdefault(key, location)
        try:
            entry_points = dist.entry_points
            found = device_plugins(entry_points)
            others = extension_plugins(entry_points)
            backends = foreign_backends(entry_points)
        except Exception as error:
            unreadable.append(Unreadable(distribution_name(dist), location, exception_text(error)))
            continue
        if hidden_by is None:
            devices += found
            extensions += others
            foreign += backends
        else:
            shadowed += [Shadowed(plugin, hidden_by) for plugin in found]
    return Inventory(
        devices=tuple(sorted(devices)),
        extensions=tuple(sorted(extensions)),
        foreign_backends=tuple(sorted(foreign)),
        shadowed=tuple(sorted(shadowed, key=lambda copy: copy.plugin)),
        unreadable=tuple(sorted(unreadable)),
    )
