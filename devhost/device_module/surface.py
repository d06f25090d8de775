"""Where the public names of ``torch.<name>`` come from, and what a plugin would have to add.

For `devhost info`; nothing of it is used when a device is activated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from devhost import torch_compat
from devhost.device_module.build import AMP_NAMES, FALLBACK_NAMES
from devhost.device_module.memory import STATISTICS_NAMES

if TYPE_CHECKING:
    from types import ModuleType

    from devhost.activation import Supplied

# What some functions of the module need of the plugin. Without it they are not there, or raise
# NotImplementedError.
_NEEDS_RNG = (
    "initial_seed",
    "get_rng_state",
    "get_rng_state_all",
    "set_rng_state",
    "set_rng_state_all",
)


class Surface(NamedTuple):
    """The public names of a device module, sorted; no name is in two of the three.

    Attributes:
        derived: Names whose functions the host has made of what the plugin supplies.
        supplied: Names that are the plugin's own, bound as they are.
        missing: Names that the host knows and that do not work, with what the plugin lacks.
    """

    derived: tuple[str, ...]
    supplied: tuple[str, ...]
    missing: dict[str, str]


def surface(module: ModuleType, supplied: Supplied) -> Surface:
    """Return where the names of an active device's module come from.

    Raises:
        RuntimeError: The plugin's allocator cannot tell how much memory is in use.
    """
    missing = {name: need for names, need in _lacking(supplied) for name in names}
    own = set(getattr(supplied.runtime, "module_members", ()))
    own |= {
        name
        for name in module.__all__
        for source in (supplied.runtime, supplied.kernels.fallback_control)
        if _is_bound(getattr(module, name), source, name)
    }
    names = [name for name in module.__all__ if name in own or name not in missing]
    return Surface(
        derived=tuple(name for name in names if name not in own),
        supplied=tuple(name for name in names if name in own),
        missing={name: need for name, need in sorted(missing.items()) if name not in own},
    )


def _lacking(supplied: Supplied) -> list[tuple[tuple[str, ...], str]]:
    """Return what the plugin has not got: the names that need it, and what it is."""
    lacking: list[tuple[tuple[str, ...], str]] = []
    if supplied.rng is None:
        lacking.append((_NEEDS_RNG, "the hook devhost_rng"))
    if supplied.amp is None:
        lacking.append((AMP_NAMES, "the hook devhost_amp"))
    if supplied.kernels.fallback_control is None:
        lacking.append((FALLBACK_NAMES, "a call of KernelRegistry.fallback"))
    if not hasattr(supplied.runtime, "can_access_peer"):
        lacking.append((("can_device_access_peer",), "the runtime's can_access_peer"))
    if not hasattr(supplied.runtime, "set_memory_fraction"):
        names = ("set_per_process_memory_fraction",)
        lacking.append((names, "the runtime's set_memory_fraction"))
    # PyTorch is asked, and not the module, in which the plugin may have functions of its own.
    try:
        torch.accelerator.memory_allocated(0)
    except RuntimeError as error:
        if not torch_compat.is_missing_device_allocator(error):
            raise
        lacking.append((STATISTICS_NAMES, "an allocator that is a c10::DeviceAllocator"))
    try:
        torch.accelerator.get_device_capability(0)
    except RuntimeError:
        lacking.append((("get_device_capability",), "a device guard that knows the capability"))
    return lacking


def _is_bound(member: Any, source: object, name: str) -> bool:
    # Methods are made anew at each look, so they are equal and not the same.
    return source is not None and bool(getattr(source, name, None) == member)
