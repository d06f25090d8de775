"""What to do about a plugin that failed, as far as its exception and its files tell.

Imported when something has gone wrong, so it may look at files and metadata.
"""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING

from devhost import torch_compat
from devhost.errors import exception_text

if TYPE_CHECKING:
    from devhost.discovery import InstalledPlugin

PYTHON = ".".join(map(str, sys.version_info[:3]))


def remedy(plugin: InstalledPlugin, error: BaseException) -> str:
    """Return what to do about ``error``, which the plugin's code raised; sentences."""
    distribution = plugin.distribution
    problem = python_problem(plugin)
    if problem:
        return f"Install a release of {distribution} that supports this Python: {problem}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        if plugin.module == error.name or plugin.module.startswith(f"{error.name}."):
            return (
                f"Its files are not there: reinstall {distribution}, or remove what is left of it "
                f"with `pip uninstall {distribution}`"
            )
        other = _compiled_for_another_python(error.name)
        if other is not None:
            return (
                f"{other} is compiled for another Python, this one loads *{EXTENSION_SUFFIXES[0]}: "
                f"reinstall {distribution} with this Python"
            )
        return f"Install the missing module {error.name}"
    if isinstance(error, ImportError) and "undefined symbol" in exception_text(error):
        return (
            f"It was probably compiled against another release of PyTorch than "
            f"{torch_compat.torch_version()[0]}: install or build a {distribution} for this one"
        )
    without = "uninstall it" if plugin.kind == "extension" else "set DEVHOST_DEVICE=none"
    return (
        f"Reinstall or update {distribution}, or {without} to do without it; the traceback is in "
        "devhost.status()"
    )


def python_problem(plugin: InstalledPlugin) -> str:
    """Return how the running Python is outside of what the distribution supports, or nothing.

    pip looks at this when it installs. A plugin can still be found by another Python, through
    PYTHONPATH or a ``--target`` folder, and may well work there; so it is an explanation of a
    failure, and no reason to refuse a plugin.
    """
    required = plugin.requires_python
    if not required:
        return ""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        supported = SpecifierSet(required).contains(PYTHON, prereleases=True)
    except InvalidSpecifier:
        return ""
    return "" if supported else f"it needs Python {required}, and this is {PYTHON}"


def _compiled_for_another_python(module_name: str) -> str | None:
    """Return the file name of a compiled module that this Python does not recognise as one."""
    package, _, name = module_name.rpartition(".")
    for folder in getattr(sys.modules.get(package), "__path__", ()):
        for file in sorted(Path(folder).glob(f"{name}.*")):
            if file.suffix in (".so", ".pyd"):
                return file.name
    return None
