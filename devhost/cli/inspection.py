"""Looks at plugins as `devhost list` shows them: a device's hooks and probe, a site's choice.

Runs in a child process, and imports torch only if a plugin does.
"""

from __future__ import annotations

import sys
import time
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from devhost import checks, torch_compat
from devhost.discovery import DEVICE_GROUP, load
from devhost.errors import (
    PluginCheckError,
    PluginError,
    SelectionError,
    exception_text,
    one_line,
)
from devhost.manager import Hooks
from devhost.types import DeviceInfo

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devhost.cli.processes import Send
    from devhost.discovery import InstalledPlugin


def inspect(request: dict[str, Any], send: Send) -> dict[str, Any]:
    """Import a device plugin, check it and probe it.

    Returns:
        ``error`` or ``problems`` if it cannot be used, and what it says about itself.
    """
    start = time.perf_counter()
    send({"stage": f"importing {request['value']}"})
    plugin = load(EntryPoint(request["name"], request["value"], DEVICE_GROUP))

    send({"stage": "checking its hooks"})
    hooks = Hooks()
    problems = [
        *(f"'{request['name']}': {problem}" for problem in checks.name_problems(request["name"])),
        *checks.hook_problems(plugin, hooks.manager, device=True),
    ]
    if problems:
        return {"problems": problems}
    failures = _register_extensions(request["extensions"], hooks, send)
    hooks.manager.register(plugin)

    send({"stage": "calling devhost_device()"})
    info = hooks.device()
    problems = list(checks.info_problems(info, request["name"]))
    if not isinstance(info, DeviceInfo):
        return {"problems": problems}
    if request["torch"] is not None:
        from packaging.version import Version

        problems += torch_compat.version_problems(info, request["torch"], Version)
    answer = {
        "description": info.description,
        "simulated": info.simulated,
        "priority": info.priority,
        "extension_failures": failures,  # a list that grows while hooks are called
    }
    if problems:
        return {**answer, "problems": problems}

    send({"stage": "calling devhost_probe()"})
    probe = hooks.probe()
    problems = list(checks.probe_problems(probe))
    if "torch._C" in sys.modules and not torch_compat.slot_is_free_for(request["name"]):
        problems.append(
            f"it took PyTorch's slot by itself, which now belongs to {torch_compat.slot_holder()}"
        )
    if problems:
        return {**answer, "problems": problems}
    return {
        **answer,
        "available": probe.available,
        "reason": probe.reason,
        "devices": list(probe.devices),
        "imports_torch": "torch" in sys.modules,
        "seconds": round(time.perf_counter() - start, 6),
    }


def ask(request: dict[str, Any], send: Send) -> dict[str, Any]:
    """Ask the extensions' ``devhost_select``; those that cannot be loaded are left out.

    Returns:
        ``choice``: what was answered, or None; ``error`` if one of them failed.
    """
    hooks = Hooks()
    _register_extensions(request["extensions"], hooks, send)
    send({"stage": "calling devhost_select()"})
    candidates = [SimpleNamespace(**c) for c in request["candidates"]]
    try:
        return {"choice": hooks.select(candidates)}
    except SelectionError as error:
        return {"error": str(error)}


def _register_extensions(
    extensions: Iterable[InstalledPlugin], hooks: Hooks, send: Send
) -> list[str]:
    """Register those that can be; return a list to which failures are added, now and later."""
    failures: list[str] = []

    def note(error: PluginError) -> None:
        failures.append(one_line(str(error)))

    for who in extensions:
        send({"stage": f"loading extension {who.describe()}"})
        try:
            extension = who.load()
            problems = list(checks.hook_problems(extension, hooks.manager, device=False))
            if problems:
                note(PluginCheckError(who.describe(), problems, who.kind))
            else:
                hooks.register_extension(extension, who, note)
        except BaseException as error:
            problem = f"failed while importing {who.value}: {exception_text(error)}"
            note(PluginError(who.describe(), problem, "Update or uninstall it", who.kind))
    return failures
