"""Which plugins are installed, read from entry points. Nothing of a plugin is imported here.

There are two readers of the same metadata, because they are used under different constraints:

- `import torch` uses the standard library's ``importlib.metadata``. torch has imported it already,
  while importing the backport costs 4 ms and scanning with it another 4 ms: as much as everything
  devhost may cost when no plugin is installed.
- `devhost list` uses the backport ``importlib_metadata``, which reads metadata the same way on
  every Python version, and looks at what the first reader hides: shadowed copies and metadata
  that cannot be read. That is in ``devhost.cli.inventory``.

What either finds is an ``InstalledPlugin``; order and identity are decided here, for both.
"""

from __future__ import annotations

import re
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from devhost.errors import DiscoveryError, exception_text

if TYPE_CHECKING:
    from collections.abc import Iterable

DEVICE_GROUP = "devhost.devices"
EXTENSION_GROUP = "devhost.extensions"


class InstalledPlugin:
    """One entry point of a plugin group.

    Args:
        entry_point: An ``EntryPoint`` of importlib.metadata or of the backport.

    Attributes:
        name: Name of the entry point; for a device plugin, the device's name.
        value: What it points to, ``module`` or ``module:object``.
    """

    def __init__(self, entry_point: Any) -> None:
        self._entry_point = entry_point
        self.name: str = entry_point.name
        self.value: str = entry_point.value

    # Distribution and version need the METADATA file parsed: done when asked, not when scanning.

    @cached_property
    def distribution(self) -> str:
        """Name of the distribution; of its metadata folder if the metadata cannot be read."""
        return distribution_name(self._entry_point.dist)

    @cached_property
    def version(self) -> str:
        """Version of the distribution, or ``unknown``."""
        return _metadata_field(self._entry_point.dist, "Version") or "unknown"

    @cached_property
    def requires_python(self) -> str | None:
        """The versions of Python that the distribution supports, ``>=3.10``; None if any."""
        return _metadata_field(self._entry_point.dist, "Requires-Python")

    @cached_property
    def location(self) -> str:
        """Folder that the distribution is installed in."""
        return str(self._entry_point.dist.locate_file(""))

    @property
    def module(self) -> str:
        """Name of the module that the entry point's value is in."""
        return self.value.partition(":")[0].strip()

    def load(self) -> Any:
        """Import the hook module and return the object that carries the hooks.

        Raises:
            DiscoveryError: The entry point's value names no module.
            BaseException: Whatever the plugin's code raises.
        """
        return load(self._entry_point)

    def describe(self) -> str:
        """Return the plugin as messages name it: device, distribution, version, module, place."""
        where = f"module {self.module} in {self.location}"
        return f"'{self.name}' ({self.distribution} {self.version}, {where})"

    def __repr__(self) -> str:
        return f"<InstalledPlugin {self.describe()}>"


class Installed(NamedTuple):
    """All plugins of an environment, sorted by name.

    Attributes:
        devices: Entry points of the group ``devhost.devices``.
        extensions: Entry points of the group ``devhost.extensions``.
        seconds: How long it took to find them.
    """

    devices: tuple[InstalledPlugin, ...]
    extensions: tuple[InstalledPlugin, ...]
    seconds: float


def discover() -> Installed:
    """Return the installed plugins, as Python's import system would find them.

    Of several copies of one distribution, the first on ``sys.path`` counts.

    Raises:
        DiscoveryError: Some distribution's entry points cannot be read.
    """
    from importlib.metadata import entry_points

    start = time.perf_counter()
    try:
        # One pass over all distributions: a second one for the second group would cost as much.
        found = entry_points()
        devices = _in_order(found.select(group=DEVICE_GROUP))
        extensions = _in_order(found.select(group=EXTENSION_GROUP))
    except Exception as error:
        raise DiscoveryError(
            f"the entry points of the installed distributions cannot be read: "
            f"{exception_text(error)}. `devhost list` names the distribution; reinstall it"
        ) from error
    return Installed(devices, extensions, time.perf_counter() - start)


def load(entry_point: Any) -> Any:
    """Import what ``entry_point`` points to and return it. Raises as InstalledPlugin.load does."""
    # Both readers store any text, and their load() of one that is no reference ends in an
    # AttributeError about None.
    if not entry_point.pattern.match(entry_point.value):
        raise DiscoveryError(
            f"the value of its entry point, {entry_point.value!r}, is neither 'module' nor "
            "'module:object'"
        )
    return entry_point.load()


def _in_order(entry_points: Iterable[Any]) -> tuple[InstalledPlugin, ...]:
    # Never the order of directories, which differs between file systems and installations.
    return tuple(sorted(map(InstalledPlugin, entry_points), key=sort_key))


def sort_key(plugin: InstalledPlugin) -> tuple[str, str, str]:
    """Return the key that plugins are sorted by wherever they are listed."""
    return plugin.name, plugin.distribution, plugin.value


def normalize(name: str) -> str:
    """Return a device or distribution name in the form in which names are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def distribution_name(dist: Any) -> str:
    """Return a distribution's name, or that of its metadata folder if it has no readable name."""
    # _path is private in both readers, but with the metadata broken nothing else tells the name.
    return _metadata_field(dist, "Name") or str(getattr(dist, "_path", "unknown"))


def _metadata_field(dist: Any, field: str) -> str | None:
    try:
        value = dist.metadata[field]
    except Exception:  # missing file or field, or bytes that are no text: differs by reader
        return None
    return str(value) if value else None
