"""Kernels of the minimal device, through PyTorch's Python interface for PrivateUse1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from devhost import KernelRegistry


class MinimalTensor(torch.Tensor):
    """A tensor of the device: shape and dtype are PyTorch's, ``data_on_cpu`` has the numbers."""

    data_on_cpu: torch.Tensor

    # Only the dispatcher is of interest, not the class: a plain tensor comes back from .cpu().
    __torch_function__ = torch._C._disabled_torch_function_impl


def wrap(data: torch.Tensor) -> MinimalTensor:
    tensor = torch._C._acc.create_empty_tensor(tuple(data.shape), data.dtype)
    tensor.__class__ = MinimalTensor
    tensor.data_on_cpu = data
    return tensor


def unwrap(value: Any) -> Any:
    return value.data_on_cpu if isinstance(value, MinimalTensor) else value


def empty(size: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
    return wrap(torch.empty(size, dtype=dtype or torch.get_default_dtype()))


def empty_strided(size: Any, stride: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
    return wrap(torch.empty(size, dtype=dtype or torch.get_default_dtype()))


def copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> Any:
    unwrap(target).copy_(unwrap(source))
    return target


def fill_(tensor: torch.Tensor, value: Any) -> torch.Tensor:
    unwrap(tensor).fill_(value)
    return tensor


def add(left: torch.Tensor, right: Any, *, alpha: Any = 1) -> torch.Tensor:
    return wrap(torch.add(unwrap(left), unwrap(right), alpha=alpha))


def mul(left: torch.Tensor, right: Any) -> torch.Tensor:
    return wrap(torch.mul(unwrap(left), unwrap(right)))


def mm(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return wrap(torch.mm(unwrap(left), unwrap(right)))


def exp(tensor: torch.Tensor) -> torch.Tensor:
    return wrap(unwrap(tensor).exp())


def softmax(tensor: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:
    return wrap(unwrap(tensor).softmax(dim))


def atan2(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return wrap(torch.atan2(unwrap(left), unwrap(right)))


def cat(tensors: Any, dim: int = 0) -> torch.Tensor:
    return wrap(torch.cat([unwrap(tensor) for tensor in tensors], dim))


def halve(tensor: torch.Tensor) -> torch.Tensor:
    return wrap(unwrap(tensor) / 2)


def transpose(tensor: torch.Tensor, first: int, second: int) -> torch.Tensor:
    return wrap(unwrap(tensor).transpose(first, second))


def view(tensor: torch.Tensor, size: Any) -> torch.Tensor:
    return wrap(unwrap(tensor).view(size))


def local_scalar_dense(tensor: torch.Tensor) -> Any:
    return unwrap(tensor).item()


def register(registry: KernelRegistry) -> None:
    registry.register_python_device()
    for name, kernel in {
        "empty.memory_format": empty,
        "empty_strided": empty_strided,
        "_copy_from": copy_from,
        "fill_.Scalar": fill_,
        "add.Tensor": add,
        "mul.Tensor": mul,
        "mm": mm,
        "exp": exp,
        "_softmax": softmax,
        "atan2": atan2,
        "cat": cat,
        "transpose.int": transpose,
        "view": view,
        "_local_scalar_dense": local_scalar_dense,
    }.items():
        registry.impl(f"aten::{name}", kernel)
    registry.define("minimal::halve(Tensor x) -> Tensor")
    registry.impl("minimal::halve", halve)
