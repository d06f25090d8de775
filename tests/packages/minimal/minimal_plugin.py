"""A complete device in pure Python: its tensors keep their data in a CPU tensor beside them."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

from devhost import AmpPolicy, DeviceInfo, ProbeResult, hookimpl

if TYPE_CHECKING:
    import torch

    from devhost import DeviceRng, DeviceRuntime, KernelRegistry

COUNT = 2


class Runtime:
    """Two devices; a tensor is always on the first, PyTorch's Python interface has no more."""

    def __init__(self) -> None:
        self.current = 0
        self.starts = 0
        self.pid = 0
        self.synchronized: list[int] = []
        self.module_members = {"runtime": self, "answer": 42}

    def device_count(self) -> int:
        return COUNT

    def current_device(self) -> int:
        return self.current

    def set_device(self, index: int) -> None:
        self.current = index

    def exchange_device(self, index: int) -> int:
        previous, self.current = self.current, index
        return previous

    def synchronize(self, index: int) -> None:
        self.synchronized.append(index)

    def init(self) -> None:
        self.starts += 1
        self.pid = os.getpid()

    def is_in_bad_fork(self) -> bool:
        return self.pid not in (0, os.getpid())

    def get_device_properties(self, index: int) -> SimpleNamespace:
        return SimpleNamespace(name=f"Minimal {index}", total_memory=1 << 20)


class Rng:
    def __init__(self) -> None:
        import torch

        self.generators = [torch.Generator() for _ in range(COUNT)]

    def default_generator(self, index: int) -> torch.Generator:
        return self.generators[index]


@hookimpl
def devhost_device() -> DeviceInfo:
    return DeviceInfo(name="minimal", description="A minimal device", simulated=True)


@hookimpl
def devhost_probe() -> ProbeResult:
    if os.environ.get("MINIMAL_HIDE"):
        return ProbeResult(available=False, reason="MINIMAL_HIDE is set")
    return ProbeResult(available=True, devices=("Minimal 0", "Minimal 1"))


@hookimpl
def devhost_kernels(registry: KernelRegistry) -> None:
    import minimal_kernels

    minimal_kernels.register(registry)


@hookimpl
def devhost_runtime() -> DeviceRuntime:
    return Runtime()


@hookimpl
def devhost_rng() -> DeviceRng:
    return Rng()


@hookimpl
def devhost_amp() -> AmpPolicy:
    import torch

    return AmpPolicy(
        supported_dtypes=(torch.bfloat16, torch.float16),
        default_dtype=torch.bfloat16,
        lower_precision=("aten::mm", "minimal::halve"),
        float32=("aten::exp", "aten::softmax.int"),
        promote=("aten::atan2", "aten::cat"),
    )
