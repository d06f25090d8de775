"""What `devhost info` has from its child process: one plugin, activated and looked at."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from devhost import activation, torch_compat
from devhost.cli import alone
from devhost.errors import exception_text
from devhost.journal import State, traceback_text
from devhost.kernels import DEVICE_KEY

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import ModuleType

    from devhost.activation import Supplied
    from devhost.cli.processes import Send
    from devhost.discovery import InstalledPlugin
    from devhost.kernels import KernelRegistry

_COMPOSITE_KEYS = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)


def describe(plugin: InstalledPlugin, send: Send) -> dict[str, Any]:
    """Activate a plugin alone and describe it, as far as that is possible.

    Returns:
        ``state`` and ``reason``, and ``traceback`` if it failed; ``info``, ``probe`` and ``hooks``
        if its hooks can be called; ``devices``, ``module`` and ``kernels`` if it is active.
    """
    answer: dict[str, Any] = {}
    try:
        answer |= _from_hooks(plugin, send)
    except BaseException as error:  # if its torch is not to blame, activation fails in the same way
        answer |= {
            "state": str(State.FAILED),
            "reason": exception_text(error),
            "traceback": traceback_text(error),
        }
    send({"stage": "importing torch"})
    try:
        import torch
    except BaseException as error:
        reason = f"torch cannot be imported: {exception_text(error)}"
        return {**answer, "state": str(State.FAILED), "reason": reason}

    before = torch_compat.operators_with_kernel(DEVICE_KEY)
    outcome = alone.activate(plugin, send)
    problem = outcome.get("problem") or outcome.get("error")
    answer["state"], answer["reason"] = outcome["state"], problem or outcome.get("reason", "")
    if "traceback" in outcome:
        answer["traceback"] = outcome["traceback"]
    supplied = activation.supplied()
    if supplied is not None:
        module = getattr(torch, plugin.name)
        send({"stage": "asking for its devices"})
        answer["devices"] = [_device(module, index) for index in range(module.device_count())]
        send({"stage": "asking for its functions"})
        answer["module"] = _module(module, supplied)
        send({"stage": "counting its kernels"})
        module.init()  # a plugin may register them as late as then
        answer["kernels"] = _kernels(supplied.kernels, before)
    return answer


def _from_hooks(plugin: InstalledPlugin, send: Send) -> dict[str, Any]:
    send({"stage": f"importing {plugin.value}"})
    hooks = alone.hooks_of(plugin)
    callers = hooks.manager.get_hookcallers(plugin.load()) or ()
    send({"stage": "calling devhost_device() and devhost_probe()"})
    return {
        "hooks": [caller.name for caller in callers],
        "info": dataclasses.asdict(hooks.device()),
        "probe": dataclasses.asdict(hooks.probe()),
    }


def _device(module: ModuleType, index: int) -> dict[str, Any]:
    """Return name and memory of one device, in bytes; free memory only if it can be told."""
    properties = module.get_device_properties(index)
    try:
        free = module.mem_get_info(index)[0]
    except NotImplementedError:  # its allocator keeps no statistics
        free = None
    return {"name": properties.name, "total_memory": properties.total_memory, "free_memory": free}


def _module(module: ModuleType, supplied: Supplied) -> dict[str, Any]:
    from devhost.device_module.surface import surface  # imports torch at its top

    found = surface(module, supplied)
    return {
        "derived": list(found.derived),
        "supplied": list(found.supplied),
        "missing": found.missing,
    }


def _kernels(registry: KernelRegistry, before: Collection[str]) -> dict[str, int]:
    """Count operators by what runs when they are called on the device.

    Args:
        registry: What the plugin has registered from Python.
        before: Operators that had a kernel for the device's key before the plugin was loaded.

    Returns:
        ``native`` and ``python``: operators with a kernel of the plugin's, compiled or in Python.
        Of PyTorch's own operators without one that the CPU can run: ``composite``, which PyTorch
        composes of others; ``fallback``, which run the CPU's kernel; ``none``, which cannot run.
    """
    own = set(torch_compat.operators_with_kernel(DEVICE_KEY)) - set(before)
    python = own.intersection(registry.operators.get(DEVICE_KEY, ()))
    composite: set[str] = set()
    for key in _COMPOSITE_KEYS:
        composite.update(torch_compat.operators_with_kernel(key))
    others = {name for name in torch_compat.all_operators() if name.startswith("aten::")} - own
    remaining = (others - composite) & set(torch_compat.operators_with_kernel("CPU"))
    has_fallback = torch_compat.has_fallback(DEVICE_KEY)
    return {
        "native": len(own - python),
        "python": len(python),
        "composite": len(others & composite),
        "fallback": len(remaining) if has_fallback else 0,
        "none": 0 if has_fallback else len(remaining),
    }
