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

import os
import re
import sys
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devhost.errors import DiscoveryError, exception_text

if TYPE_CHECKING:
    from collections.abc import Iterable

DEVICE_GROUP = "devhost.devices"
EXTENSION_GROUP = "devhost.extensions"
BACKEND_GROUP = "torch.backends"
"""The group whose entry points torch calls by itself at the end of `import torch`."""

OWN_BACKEND = "devhost.autoload:autoload"
"""Value of devhost's own entry point in that group."""
RANKING_GROUP = "devhost.ranking"

_DIGITS = frozenset("0123456789")


class InstalledPlugin:
    """One entry point of a plugin group.

    Args:
        entry_point: An ``EntryPoint`` of importlib.metadata or of the backport.
        marks: What the device's entry point in the group ``devhost.ranking`` says, marks with dots
            between them; empty if there is none.

    Attributes:
        name: Name of the entry point; for a device plugin, the device's name.
        value: What it points to, ``module`` or ``module:object``.
        simulated: Whether it is marked ``simulated``: there is no hardware behind the device.
        priority: The number in its mark ``priority_N``; 0 without one.
        unknown_marks: Its marks that mean nothing.
    """

    def __init__(self, entry_point: Any, marks: str = "") -> None:
        self._entry_point = entry_point
        self.name: str = entry_point.name
        self.value: str = entry_point.value
        self.simulated = False
        self.priority = 0
        self.unknown_marks: tuple[str, ...] = ()
        for mark in marks.split(".") if marks else ():
            kind, _, number = mark.partition("_")
            if mark == "simulated":
                self.simulated = True
            # As many digits as DeviceInfo.priority may have.
            elif kind == "priority" and _DIGITS.issuperset(number) and 0 < len(number) <= 9:
                self.priority = int(number)
            else:
                self.unknown_marks += (mark,)

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
    def kind(self) -> str:
        """What messages call it: ``device plugin`` or ``extension``."""
        return "extension" if self._entry_point.group == EXTENSION_GROUP else "device plugin"

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

    def is_called(self, name: str) -> bool:
        """Return whether ``name`` is the plugin's own name or that of its distribution."""
        return normalize(name) in (normalize(self.name), normalize(self.distribution))

    def describe(self) -> str:
        """Return the plugin as messages name it: device, distribution, version, module, place."""
        where = f"module {self.module} in {self.location}"
        return f"'{self.name}' ({self.distribution} {self.version}, {where})"

    def __str__(self) -> str:
        return self.describe()

    def __lt__(self, other: InstalledPlugin) -> bool:
        # The order wherever plugins are listed: never that of directories, which differs between
        # file systems. The distribution's name would cost a file for each plugin installed.
        mine, theirs = (self.name, self.value), (other.name, other.value)
        return mine < theirs if mine != theirs else self.distribution < other.distribution

    def __repr__(self) -> str:
        return f"<InstalledPlugin {self.describe()}>"


class Installed:
    """All plugins of an environment, sorted by name.

    Attributes:
        devices: Entry points of the group ``devhost.devices``.
        extensions: Entry points of the group ``devhost.extensions``.
        seconds: How long it took to find them.
        foreign_backends: Those of the group ``torch.backends`` that are not devhost's.
    """

    # Plain classes on the path of `import torch`: a NamedTuple or a dataclass is put together and
    # compiled when it is defined, which takes as long as importing a module.
    def __init__(
        self,
        devices: tuple[InstalledPlugin, ...],
        extensions: tuple[InstalledPlugin, ...],
        seconds: float,
        foreign_backends: tuple[InstalledPlugin, ...] = (),
    ) -> None:
        self.devices = devices
        self.extensions = extensions
        self.seconds = seconds
        self.foreign_backends = foreign_backends


def discover() -> Installed:
    """Return the installed plugins, as Python's import system would find them.

    Of several copies of one distribution, the first on ``sys.path`` counts.

    Raises:
        DiscoveryError: Some distribution's entry points cannot be read.
    """
    start = time.perf_counter()
    try:
        # One pass over all distributions: a second one for the second group would cost as much.
        found = _entry_points()
        devices = sorted(device_plugins(found))
        extensions = sorted(extension_plugins(found))
        foreign = sorted(foreign_backends(found))
    except Exception as error:
        raise DiscoveryError(
            f"the entry points of the installed distributions cannot be read: "
            f"{exception_text(error)}. `devhost list` names the distribution; reinstall it"
        ) from error
    seconds = time.perf_counter() - start
    return Installed(tuple(devices), tuple(extensions), seconds, tuple(foreign))


def _entry_points() -> list[Any]:
    """Return the entry points of all distributions that have some in the groups above."""
    from importlib.metadata import distributions

    # Parsing is most of the time that entry points take, and hardly any distribution has ours.
    found: dict[str, Any] = {}
    for dist in distributions():
        text = dist.read_text("entry_points.txt")
        if text and ("devhost." in text or BACKEND_GROUP in text):
            # The copy that counts may be another, without such entry points.
            name = key_of_copies(dist)
            if name not in found:
                found[name] = next(iter(distributions(name=name)), dist)
    return [entry for dist in found.values() for entry in dist.entry_points]


def foreign_backends(entry_points: Iterable[Any]) -> list[InstalledPlugin]:
    """Return what else torch calls at the end of `import torch`: vendors' backends and patches.

    Args:
        entry_points: Those of one distribution or of all.
    """
    return [
        InstalledPlugin(entry)
        for entry in entry_points
        if entry.group == BACKEND_GROUP and entry.value != OWN_BACKEND
    ]


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


def owner_of(module: str) -> str | None:
    """Return name and version of the distribution that a module belongs to; None if unknown.

    Slow, for error messages only: unless it is a backend's, every list of files is read.
    """
    from importlib.metadata import packages_distributions, version

    package = module.partition(".")[0]
    try:
        for backend in foreign_backends(_entry_points()):
            if backend.module.partition(".")[0] == package:
                return f"{backend.distribution} {backend.version}"
        for distribution in packages_distributions().get(package, ()):
            return f"{distribution} {version(distribution)}"
    except Exception:  # damaged metadata of whatever distribution, and this is no time for it
        return None
    return None


def device_plugins(entry_points: Iterable[Any]) -> list[InstalledPlugin]:
    """Return the device plugins among the entry points of one distribution or of all."""
    entries = [e for e in entry_points if e.group in (DEVICE_GROUP, RANKING_GROUP)]
    # A device's marks are those of its own distribution: another one cannot rank it.
    marks = {(e.dist, e.name): e.value for e in entries if e.group == RANKING_GROUP}
    return [
        InstalledPlugin(e, marks.get((e.dist, e.name), ""))
        for e in entries
        if e.group == DEVICE_GROUP
    ]


def extension_plugins(entry_points: Iterable[Any]) -> list[InstalledPlugin]:
    """Return the extensions among the entry points of one distribution or of all."""
    return [InstalledPlugin(e) for e in entry_points if e.group == EXTENSION_GROUP]


def normalize(name: str) -> str:
    """Return a device or distribution name in the form in which names are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def nearest_names(names: Iterable[str], plugins: Iterable[InstalledPlugin]) -> str:
    """Return `` Did you mean 'x'?`` for misspelled names, or nothing if they are like no plugin's.

    Args:
        names: Names that fit no plugin.
        plugins: The plugins that they may mean, by their own names or those of distributions.
    """
    import difflib  # only a misspelled name needs it

    known = {normalize(n): n for p in plugins for n in (p.distribution, p.name)}
    near = [difflib.get_close_matches(normalize(name), known, n=1) for name in names]
    meant = " and ".join(dict.fromkeys(f"'{known[match]}'" for found in near for match in found))
    return f" Did you mean {meant}?" if meant else ""


def choice_file() -> Path:
    """Return the file for the choice saved by `devhost use`, whether it is there or not.

    Here, and not beside what reads and writes it, because `import torch` looks for it also where
    no plugin is installed, and imports next to nothing there.
    """
    return Path(sys.prefix, "etc", "devhost", "device")


def has_saved_choice() -> bool:
    """Return whether `devhost use` has saved a choice, which may still be unreadable."""
    # Not Path.exists(), which raises where a folder may not be searched.
    return os.path.exists(choice_file())  # noqa: PTH110


def distribution_name(dist: Any) -> str:
    """Return a distribution's name, or that of its metadata folder if it has no readable name."""
    # _path is private in both readers, but with the metadata broken nothing else tells the name.
    return _metadata_field(dist, "Name") or str(getattr(dist, "_path", "unknown"))


def key_of_copies(dist: Any) -> str:
    """Return the name by which both readers tell copies of one distribution."""
    # Private in both, but made from the folder's name: the public name would cost a file.
    return getattr(dist, "_normalized_name", None) or distribution_name(dist)


def _metadata_field(dist: Any, field: str) -> str | None:
    try:
        value = dist.metadata[field]
    except Exception:  # missing file or field, or bytes that are no text: differs by reader
        return None
    return str(value) if value else None
