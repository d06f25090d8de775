"""The hooks through which devhost knows OpenReg.

Importing this module loads neither torch nor native code.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from devhost import AmpPolicy, DeviceInfo, KernelRegistry, ProbeResult, hookimpl
from devhost_openreg._build import BUILT_FOR_TORCH

if TYPE_CHECKING:
    from types import ModuleType


@hookimpl
def devhost_device() -> DeviceInfo:
    """Say who the device is."""
    return DeviceInfo(
        name="openreg",
        description="Simulated accelerator with a compiled driver, runtime and kernels",
        simulated=True,
        priority=1,
        built_for_torch=BUILT_FOR_TORCH,
    )


@hookimpl
def devhost_probe() -> ProbeResult:
    """Count the devices through the driver, which needs no torch."""
    # The driver knows of these two as well, but then its native code would have been loaded. Any
    # other list has at least one device in it, or is an error that the driver explains.
    if os.environ.get("OPENREG_VISIBLE_DEVICES") in ("", "-1"):
        return ProbeResult(available=False, reason="OPENREG_VISIBLE_DEVICES hides all devices")
    from devhost_openreg import _driver

    try:
        names = tuple(
            _driver.get_device_properties(index).name for index in range(_driver.device_count())
        )
    except _driver.DriverError as error:
        return ProbeResult(available=False, reason=str(error))
    return ProbeResult(available=True, devices=names)


@hookimpl
def devhost_kernels(registry: KernelRegistry) -> None:
    """Load the compiled kernels and add those in Python."""
    registry.fallback(registry.load("devhost_openreg._C"))
    from devhost_openreg import operators

    operators.register(registry)


@hookimpl
def devhost_runtime() -> ModuleType:
    """Give the device functions, which are the compiled module's own."""
    from devhost_openreg import _C

    return _C


@hookimpl
def devhost_rng() -> ModuleType:
    """Give the default generators."""
    from devhost_openreg import _C

    return _C


@hookimpl
def devhost_amp() -> AmpPolicy:
    """Name the dtypes of torch.autocast."""
    import torch

    return AmpPolicy(supported_dtypes=(torch.bfloat16, torch.float16), default_dtype=torch.float16)
