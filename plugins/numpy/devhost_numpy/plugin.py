"""The hooks. This module imports neither torch nor NumPy: `devhost list` loads it without them."""

from __future__ import annotations

import importlib.util
import os
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

NAME = "NumPy"
"""Of the one device, for people."""


@hookimpl
def devhost_device() -> DeviceInfo:
    """Say who the device is."""
    return DeviceInfo(
        name="ndarray", description="NumPy arrays as a device, in Python", simulated=True
    )


@hookimpl
def devhost_probe() -> ProbeResult:
    """Say whether NumPy is there, without importing it."""
    if importlib.util.find_spec("numpy") is None:
        return ProbeResult(available=False, reason="NumPy is not installed: pip install numpy")
    return ProbeResult(available=True, devices=(NAME,))


@hookimpl
def devhost_kernels(registry: KernelRegistry) -> None:
    """Register the operators. Only now are torch and NumPy needed."""
    from devhost_numpy import (
        convolution,
        elementwise,
        indexing,
        linalg,
        random,
        recurrent,
        reductions,
        tensors,
        training,
    )

    registry.register_python_device()
    registry.allow_moving_parameters()
    registry.fallback()
    for module in (
        tensors,
        elementwise,
        linalg,
        reductions,
        indexing,
        convolution,
        training,
        recurrent,
        random,
    ):
        module.register(registry)


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
        """Return False: the arrays are the process's own memory, and a fork copies them."""
        return False

    def get_device_properties(self, index: int) -> SimpleNamespace:
        """Return the device's name, and its memory: all that the machine has."""
        return SimpleNamespace(
            name=NAME, total_memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        )


@hookimpl
def devhost_runtime() -> DeviceRuntime:
    """Return the runtime; the host derives torch.ndarray from it."""
    return Runtime()


@hookimpl
def devhost_rng() -> DeviceRng:
    """Return the generators; the host derives seeding, states and the rest from them."""
    from devhost_numpy.random import RNG

    return RNG


@hookimpl
def devhost_amp() -> AmpPolicy:
    """Say what autocast does on the device; the host registers the casts."""
    import torch

    from devhost_numpy.autocast import FLOAT32, LOWER_PRECISION, PROMOTE

    return AmpPolicy(
        supported_dtypes=(torch.bfloat16, torch.float16),
        default_dtype=torch.bfloat16,
        lower_precision=LOWER_PRECISION,
        float32=FLOAT32,
        promote=PROMOTE,
    )
