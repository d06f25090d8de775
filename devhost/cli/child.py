"""The process in which a command runs one plugin's code, so that it may crash or hang there.

Reports to the parent as lines of JSON: ``{"stage": ...}`` before each step, which tells where a
crash happened, and ``{"result": ...}`` at the end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

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
    from collections.abc import Callable, Iterable

    from devhost.discovery import InstalledPlugin

    Send: TypeAlias = Callable[[dict[str, Any]], None]


def main(request: dict[str, Any]) -> None:
    """Do what the parent asks and end the process.

    Args:
        request: What to do and with which arguments: one of ``{"inspect": {...}}`` and
            ``{"select": {...}}``, or ``{"trial": ..., ...}`` for those in ``trials``. Extensions
            among the arguments are InstalledPlugin.
    """
    # The plugin may print: its output goes where errors go, the real one is for the parent.
    channel = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    try:
        answer = _answer(request, send)
    except BaseException as error:  # SystemExit as well: whatever it is, it is the answer
        answer = {"error": exception_text(error)}
    send({"result": answer})
    # At exit a plugin's threads or handlers may still hang or crash; the answer is given.
    os._exit(0)


def _answer(request: dict[str, Any], send: Send) -> dict[str, Any]:
    if "inspect" in request:
        return inspect(request["inspect"], send)
    if "select" in request:
        return ask(request["select"], send)
    from devhost.cli import trials  # not for `devhost list`, which is to be fast

    return trials.run(request, send)


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
