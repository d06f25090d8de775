"""The operators. A tensor of this device has no memory of its own: it carries a CPU tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._C import _acc, _disabled_torch_function_impl

if TYPE_CHECKING:
    from devhost import KernelRegistry


class AcmeTensor(torch.Tensor):
    """A tensor of device acme; `data_on_host` holds its values."""

    data_on_host: torch.Tensor

    # A result is wrapped by its kernel, or is an ordinary tensor on the CPU: never by the class.
    __torch_function__ = _disabled_torch_function_impl


def _wrap(data_on_host: torch.Tensor) -> torch.Tensor:
    tensor = _acc.create_empty_tensor(data_on_host.shape, data_on_host.dtype)
    tensor.__class__ = AcmeTensor
    tensor.data_on_host = data_on_host
    return tensor


def _unwrap(value: Any) -> Any:
    if isinstance(value, AcmeTensor):
        return value.data_on_host
    if isinstance(value, torch.Tensor) and value.device.type != "cpu":
        # PyTorch made it without a kernel of this device: a view, or a lazy conjugate.
        raise NotImplementedError("device acme has no views: copy the tensor to the CPU before")
    return value


def _empty(size: list[int], *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    return _wrap(torch.empty(size, dtype=dtype, device="cpu"))


def _empty_strided(
    size: list[int], stride: list[int], *, dtype: torch.dtype | None = None, **_: Any
) -> torch.Tensor:
    return _wrap(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


def _copy_from(
    source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False
) -> torch.Tensor:
    _unwrap(target).copy_(_unwrap(source), non_blocking)
    return target


def _on_host(function: Any) -> Any:
    """Return a kernel that calls a function of PyTorch on the values."""

    def kernel(*arguments: Any, **options: Any) -> torch.Tensor:
        return _wrap(function(*map(_unwrap, arguments), **options))

    return kernel


def register(registry: KernelRegistry) -> None:
    """Register the device with PyTorch's C++ code, and its kernels with the dispatcher."""
    registry.register_python_device()
    registry.impl("aten::empty.memory_format", _empty)
    registry.impl("aten::empty_strided", _empty_strided)
    registry.impl("aten::_copy_from", _copy_from)
    registry.impl("aten::detach", _on_host(torch.detach))
    registry.impl("aten::add.Tensor", _on_host(torch.add))
    registry.impl("aten::mul.Tensor", _on_host(torch.mul))
    registry.impl("aten::mm", _on_host(torch.mm))
    registry.impl("aten::exp", _on_host(torch.exp))
    registry.impl("aten::atan2", _on_host(torch.atan2))
