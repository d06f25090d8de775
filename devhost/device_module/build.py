"""Puts the module ``torch.<name>`` together from what a plugin supplies."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from devhost.device_module.amp import Amp
from devhost.device_module.compile import INDUCTOR_NAMES, NoInductor
from devhost.device_module.devices import Devices, device_contexts
from devhost.device_module.lazy_init import LazyInit
from devhost.device_module.memory import STATISTICS_NAMES, Memory
from devhost.device_module.random import NoRandom, Random
from devhost.device_module.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devhost.types import AmpPolicy, DeviceRng, DeviceRuntime, FallbackControl

AMP_NAMES = ("get_amp_supported_dtype", "is_bf16_supported")
FALLBACK_NAMES = ("fallback_stats", "reset_fallback_stats")


def build(
    name: str,
    plugin: object,
    runtime: DeviceRuntime,
    rng: DeviceRng | None = None,
    amp: AmpPolicy | None = None,
    fallback: FallbackControl | None = None,
) -> ModuleType:
    """Return the device module, with the surface that ``torch.cuda`` has.

    Nothing of the device is touched: it starts at the first use.

    Args:
        name: Device name.
        plugin: Who supplies it: its text is made for a message, because it takes reading a file.
        runtime: The plugin's runtime.
        rng: Its generators, None if it has no random numbers.
        amp: Its autocast policy, None if it does not support autocast.
        fallback: Its fallback for missing kernels, None if it has none.
    """
    module = ModuleType(f"torch.{name}", f"Device module of {name}. Compare torch.cuda's.")

    def on_started() -> None:
        # The names that PyTorch reads as plain attributes, also from torch.utils.checkpoint.
        generators = () if rng is None else map(rng.default_generator, range(count()))
        vars(module).update(default_generators=tuple(generators), _initialized=True)
        if autocast is not None:
            autocast.prepare()

    count = runtime.device_count
    autocast = None if amp is None else Amp(name, amp)
    lazy = LazyInit(name, runtime.init, runtime.is_in_bad_fork, on_started)
    devices = Devices(name, plugin, runtime, lazy)
    device, device_of = device_contexts(devices, name)
    random = NoRandom(plugin) if rng is None else Random(name, runtime, rng, devices, lazy)

    members: dict[str, Any] = {
        # Bound as they are: nothing to validate, and current_device() is asked for all the time.
        "device_count": runtime.device_count,
        "current_device": runtime.current_device,
        "_is_in_bad_fork": runtime.is_in_bad_fork,
        **_of(lazy, "init", "is_initialized"),
        "_lazy_init": lazy.init,  # PyTorch's C++ calls it by this name before it makes a tensor
        "_initialized": False,
        "default_generators": (),
        **_of(
            devices,
            "is_available",
            "set_device",
            "synchronize",
            "get_device_properties",
            "get_device_name",
            "get_device_capability",
            "can_device_access_peer",
        ),
        "device": device,
        "device_of": device_of,
        "exchange_device": devices.exchange,
        "_exchange_device": devices.exchange,
        "_maybe_exchange_device": devices.exchange,
        "_utils": SimpleNamespace(_get_device_index=devices.index),  # torch.load() looks there
        **_of(
            random,
            "manual_seed",
            "manual_seed_all",
            "seed",
            "seed_all",
            "initial_seed",
            "get_rng_state",
            "get_rng_state_all",
            "set_rng_state",
            "set_rng_state_all",
        ),
        "_get_generator": random.generator,
        "Stream": torch.Stream,
        "Event": torch.Event,
        **_of(
            Streams(name, devices, lazy),
            "current_stream",
            "default_stream",
            "set_stream",
            "stream",
            "is_current_stream_capturing",
        ),
        **_of(
            Memory(plugin, runtime, devices, lazy),
            *STATISTICS_NAMES,
            "set_per_process_memory_fraction",
            "get_per_process_memory_fraction",
        ),
    }
    if autocast is not None:
        members |= _of(autocast, *AMP_NAMES)
    if fallback is not None:
        members |= _of(fallback, *FALLBACK_NAMES)
    members |= dict.fromkeys(INDUCTOR_NAMES, NoInductor(plugin))
    supplied: Mapping[str, object] = getattr(runtime, "module_members", {})
    members |= supplied

    for cls in (device, device_of):  # so that help() and pickle find them where users do
        cls.__module__, cls.__qualname__ = module.__name__, cls.__name__
    vars(module).update(members)
    module.__dict__["__all__"] = sorted(
        name for name in members if not name.startswith("_") and name not in INDUCTOR_NAMES
    )
    return module


def _of(section: object, *names: str) -> dict[str, Any]:
    return {name: getattr(section, name) for name in names}
