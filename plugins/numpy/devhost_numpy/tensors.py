"""Kernels that make, view, resize, fill and copy tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from devhost_numpy.kernels import operator
from devhost_numpy.memory import (
    DEVICE,
    contiguous_strides,
    host,
    new_storage,
    new_tensor,
    on_cpu,
    resize,
    set_storage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from devhost import KernelRegistry


def _empty(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    return _empty_strided(
        size,
        contiguous_strides(size, memory_format),
        dtype=dtype,
        device=device,
        pin_memory=pin_memory,
    )


def _empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    if device is not None and device.index not in (None, DEVICE.index):
        raise torch.AcceleratorError(f"invalid device ordinal: there is no {device}, only {DEVICE}")
    if pin_memory:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension: {list(size)}")
    return new_tensor(size, stride, dtype or torch.get_default_dtype())


def _copy_from(
    source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False
) -> torch.Tensor:
    host(target).copy_(host(source))
    return target


def _copy_from_and_resize(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return _copy_from(source, resize(target, source.shape))


def _set_to_nothing(tensor: torch.Tensor) -> torch.Tensor:
    return set_storage(tensor, new_storage(0), 0, (0,), (1,))


def _set_to_storage(tensor: torch.Tensor, storage: torch.UntypedStorage) -> torch.Tensor:
    return set_storage(tensor, storage, 0, (storage.nbytes() // tensor.itemsize,), (1,))


def _local_scalar_dense(tensor: torch.Tensor) -> Any:
    return host(tensor).item()


def _fill(tensor: torch.Tensor, value: Any) -> torch.Tensor:
    host(tensor).fill_(host(value))
    return tensor


KERNELS: dict[str, Callable[..., Any]] = {
    "empty.memory_format": _empty,
    "empty_strided": _empty_strided,
    "_copy_from": _copy_from,
    "_copy_from_and_resize": _copy_from_and_resize,
    "_local_scalar_dense": _local_scalar_dense,
    "record_stream": lambda tensor, stream: None,  # there is one stream
    "fill_.Scalar": _fill,
    "fill_.Tensor": _fill,
    "zero_": lambda tensor: _fill(tensor, 0),
    "resize_": resize,
    "set_": _set_to_nothing,
    "set_.source_Storage": _set_to_storage,
}

# A view shares the storage: PyTorch's own kernels make it from shape and strides. All other views
# are composed of as_strided.
VIEWS = (
    "as_strided",
    "view",
    "_reshape_alias",
    "unfold",
    "view_as_real",
    "view_as_complex",
    "is_set_to",
    "set_.source_Tensor",
    "set_.source_Storage_storage_offset",
)


def register(registry: KernelRegistry) -> None:
    """Register the kernels."""
    for name, kernel in KERNELS.items():
        registry.impl(f"aten::{name}", kernel)
    for name in VIEWS:
        registry.impl(f"aten::{name}", on_cpu(operator(name)))
