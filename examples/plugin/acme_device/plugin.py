"""The hooks. This module imports no torch: `devhost list` loads it where there is none."""

from __future__ import annotations

from types import SimpleNamespace

from devhost import (
    AmpPolicy,
    DeviceInfo,
    DeviceRng,
    DeviceRuntime,
    KernelRegistry,
    ProbeResult,
    hookimpl,
)


@hookimpl
def devhost_device() -> DeviceInfo:
    """Say who the device is."""
    return DeviceInfo(name="acme", description="A minimal device in Python", simulated=True)


@hookimpl
def devhost_probe() -> ProbeResult:
    """Say that the device is there; a real plugin would ask its driver."""
    return ProbeResult(available=True, devices=("Acme One",))


@hookimpl
def devhost_kernels(registry: KernelRegistry) -> None:
    """Register the operators. Only now is torch needed."""
    from acme_device import kernels, random

    kernels.register(registry)
    random.register(registry)


class Runtime:
    """One device without queues, so that there is nothing to start and nothing to wait for."""

    def device_count(self) -> int:
        """Return the number of devices."""
        return 1

    def current_device(self) -> int:
        """Return the index of the only device."""
        return 0

    def set_device(self, index: int) -> None:
        """Stay on the only device; the host has checked the index."""

    def exchange_device(self, index: int) -> int:
        """Return the previous device, which is the only one."""
        return 0

    def synchronize(self, index: int) -> None:
        """Return at once: every kernel has finished when its call returns."""

    def init(self) -> None:
        """Start nothing."""

    def is_in_bad_fork(self) -> bool:
        """Return False: the device's memory is the process's own, and a fork copies it."""
        return False

    def get_device_properties(self, index: int) -> SimpleNamespace:
        """Return the name of the device and the size of its memory in bytes."""
        return SimpleNamespace(name="Acme One", total_memory=2**30)


@hookimpl
def devhost_runtime() -> DeviceRuntime:
    """Return the runtime; the host derives torch.acme from it."""
    return Runtime()


@hookimpl
def devhost_rng() -> DeviceRng:
    """Return the generators; the host derives seeding, states and the rest from them."""
    from acme_device.random import RNG

    return RNG


@hookimpl
def devhost_amp() -> AmpPolicy:
    """Say what autocast does on the device; the host registers the casts."""
    import torch

    return AmpPolicy(
        supported_dtypes=(torch.bfloat16, torch.float16),
        default_dtype=torch.bfloat16,
        lower_precision=("aten::mm",),
        float32=("aten::exp",),
        promote=("aten::atan2",),
    )
