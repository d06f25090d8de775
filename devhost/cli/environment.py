"""Checks of Python and of devhost's own installation. Nothing is imported, only metadata read."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING, Any

import importlib_metadata
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import devhost
from devhost.cli.findings import error, ok, warning
from devhost.discovery import BACKEND_GROUP, OWN_BACKEND, distribution_name, normalize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devhost.cli.findings import Finding


def python_findings() -> Iterator[Finding]:
    """Yield which Python this is, and whether devhost supports it."""
    version = platform.python_version()
    kind = "a virtual environment" if sys.prefix != sys.base_prefix else "no virtual environment"
    what = f"{platform.python_implementation()} in {sys.prefix}, {kind}"
    supported = _own_metadata("Requires-Python")
    if supported and not SpecifierSet(supported).contains(version, prereleases=True):
        yield error(
            "python",
            version,
            f"{what}; devhost {devhost.__version__} supports Python {supported}",
            "Use a supported version of Python",
        )
    else:
        yield ok("python", version, what)


def devhost_findings() -> Iterator[Finding]:
    """Yield whether torch finds devhost, and whether what it finds is what runs here."""
    copies: list[Any] = []
    owners: list[str] = []
    for dist in importlib_metadata.distributions():
        try:
            is_copy = normalize(distribution_name(dist)) == "devhost"
            group = dist.entry_points.select(group=BACKEND_GROUP)
            owns = any(entry.value == OWN_BACKEND for entry in group)
        except Exception:  # reported with the unreadable distributions
            continue
        if is_copy:
            copies.append(dist)
        # torch does not see what is behind another copy of the same distribution.
        if owns and (not is_copy or len(copies) == 1):
            owners.append(f"{distribution_name(dist)} in {dist.locate_file('')}")
    version = devhost.__version__
    faults = []
    if not owners:
        faults.append(
            error(
                "devhost",
                version,
                f"no installed distribution has the entry point {OWN_BACKEND} in the group "
                f"{BACKEND_GROUP}, so `import torch` does not call devhost",
                "Install devhost with pip; that its folder is on sys.path is not enough",
            )
        )
    if len(owners) > 1:
        faults.append(
            warning(
                "devhost",
                version,
                f"torch finds devhost {len(owners)} times: {'; '.join(owners)}",
                "Uninstall all but one",
            )
        )
    if len(copies) > 1:
        hidden = "; ".join(str(copy.locate_file("")) for copy in copies[1:])
        faults.append(
            warning(
                "devhost",
                version,
                f"the copy of devhost in {copies[0].locate_file('')} hides the one in {hidden}",
                "Uninstall the hidden one, or take its folder off sys.path",
            )
        )
    installed = _own_metadata("Version")
    if installed and installed != version:
        faults.append(
            warning(
                "devhost",
                version,
                f"the code that runs is of version {version}, from {devhost.__path__[0]}, and the "
                f"installed distribution says {installed}",
                "Reinstall devhost; a source tree on sys.path hides the installed one",
            )
        )
    yield from faults or [ok("devhost", version, f"installed once, from {devhost.__path__[0]}")]


def supported_torch() -> SpecifierSet:
    """Return the versions of torch that devhost requires; any if its metadata is not readable."""
    try:
        requirements = [Requirement(line) for line in importlib_metadata.requires("devhost") or ()]
    except Exception:  # not installed, or damaged, which is said elsewhere
        requirements = []
    return next((r.specifier for r in requirements if r.name == "torch"), SpecifierSet())


def _own_metadata(field: str) -> str | None:
    try:
        value = importlib_metadata.metadata("devhost")[field]
    except Exception:  # the same
        return None
    return str(value) if value else None
