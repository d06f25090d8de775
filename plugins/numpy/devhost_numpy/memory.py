"""Tensors over NumPy arrays: where the bytes are, and how a kernel gets at them.

The bytes of a storage are a NumPy array, which is an attribute of the storage's Python object.
PyTorch keeps that object as long as the storage lives. So tensors that share a storage, views among
them, share the array, and its memory is freed with the last of them. Shape, strides and offset are
PyTorch's: a tensor is an ordinary ``torch.Tensor``, and no class of our own is needed.
"""

from __future__ import annotations

import ctypes
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch._C import DispatchKey, DispatchKeySet, _acc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

DEVICE = torch.device("privateuseone", 0)
"""The only device, by the name that PyTorch gives it until devhost renames it to ndarray."""

DTYPES: dict[torch.dtype, np.dtype[Any]] = {
    getattr(torch, name): np.dtype(name)
    for name in (
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
"""The data types that both have. Others, such as bfloat16, are only bits to NumPy."""

_CPU = DispatchKeySet(DispatchKey.CPU)


def on_cpu(operator: torch._ops.OpOverload) -> Callable[..., Any]:
    """Return the CPU's kernel of an operator that handles shapes and strides, but no values."""

    def kernel(*arguments: Any, **options: Any) -> Any:
        return operator.redispatch(_CPU, *arguments, **options)

    return kernel


set_storage = on_cpu(torch.ops.aten.set_.source_Storage_storage_offset)


def new_storage(nbytes: int) -> torch.UntypedStorage:
    """Return a storage of so many bytes, in an array of its own that is not initialised.

    Raises:
        torch.OutOfMemoryError: NumPy cannot allocate it.
    """
    try:
        buffer = np.empty(nbytes, np.uint8)
    except (MemoryError, ValueError) as error:
        raise torch.OutOfMemoryError(f"{DEVICE}: {nbytes} bytes: {error}") from error
    address = buffer.__array_interface__["data"][0]
    storage = torch._C._construct_storage_from_data_pointer(address, DEVICE, nbytes)
    storage.buffer = buffer
    return storage


def new_tensor(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor whose values are not initialised."""
    tensor = _acc.create_empty_tensor((0,), dtype)
    extent = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    nbytes = extent * dtype.itemsize if all(size) else 0
    return set_storage(tensor, new_storage(nbytes), 0, size, stride)


def contiguous_strides(
    size: Sequence[int], memory_format: torch.memory_format | None = None
) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense tensor."""
    if memory_format not in (None, torch.contiguous_format, torch.preserve_format):
        return torch.empty(size, device="meta", memory_format=memory_format).stride()
    return tuple(math.prod(max(n, 1) for n in size[i + 1 :]) for i in range(len(size)))


def from_array(values: Array, dtype: torch.dtype) -> torch.Tensor:
    """Return a new tensor with the values of an array, converted to ``dtype``."""
    tensor = new_tensor(values.shape, contiguous_strides(values.shape), dtype)
    store(tensor, values)
    return tensor


def _buffer(tensor: torch.Tensor) -> Array:
    storage = tensor.untyped_storage()
    if not hasattr(storage, "buffer"):
        # PyTorch has made another storage over the same memory, as it does for DLPack.
        size = storage.nbytes()
        memory = (ctypes.c_uint8 * size).from_address(storage.data_ptr()) if size else b""
        storage.buffer = np.frombuffer(memory, np.uint8)
    buffer: Array = storage.buffer
    return buffer


def array(tensor: torch.Tensor) -> Array:
    """Return the tensor's elements as a view of its storage's array, to read and write.

    An element of a type that NumPy has not got is an unsigned integer with the same bits.
    """
    size = tensor.itemsize
    dtype = DTYPES.get(tensor.dtype) or np.dtype(f"u{size}")
    if tensor.numel() == 0:
        return np.empty(tensor.shape, dtype)
    strides = [step * size for step in tensor.stride()]
    offset = tensor.storage_offset() * size
    return np.ndarray(tensor.shape, dtype, _buffer(tensor), offset, strides)


def host(value: Any) -> Any:
    """Return a tensor of the CPU over the same bytes; anything else than a tensor of ours as is.

    With it PyTorch itself converts between data types and draws random numbers.
    """
    if not isinstance(value, torch.Tensor) or value.device != DEVICE:
        return value
    storage = torch.from_numpy(_buffer(value)).untyped_storage()
    alias = torch.empty(0, dtype=value.dtype, device="cpu")
    alias.set_(storage, value.storage_offset(), value.shape, value.stride())
    alias = alias.conj() if value.is_conj() else alias
    return torch._neg_view(alias) if value.is_neg() else alias


def values(tensor: torch.Tensor) -> Array:
    """Return the tensor's elements to compute with: of half precision in float32, as a copy.

    The tensor may be on the CPU, where PyTorch has single numbers and indices.
    """
    if tensor.device.type == "cpu":
        tensor = tensor.detach().resolve_conj().resolve_neg()
        return tensor.to(compute_dtype(tensor.dtype)).numpy()
    found = array(tensor)
    if tensor.dtype == torch.bfloat16:  # the upper half of a float32
        return np.asarray(found.astype(np.uint32) << 16).view(np.float32)
    if tensor.dtype == torch.float16:
        return found.astype(np.float32)
    return _resolved(found, tensor)


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the data type that NumPy computes in for tensors of ``dtype``."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def is_computable(dtype: torch.dtype) -> bool:
    """Return whether NumPy can compute with tensors of ``dtype``."""
    return compute_dtype(dtype) in DTYPES


def store(tensor: torch.Tensor, result: Array | Any) -> None:
    """Write values to a tensor, converted to its data type."""
    if tensor.dtype == torch.bfloat16:
        result = _bfloat16_bits(np.asarray(result, np.float32))
    np.copyto(array(tensor), _resolved(result, tensor), casting="unsafe")


def _resolved(numbers: Array, tensor: torch.Tensor) -> Array:
    """Apply the conjugation and the negation that PyTorch has noted on a tensor, but not done."""
    numbers = np.conjugate(numbers) if tensor.is_conj() else numbers
    return np.negative(numbers) if tensor.is_neg() else numbers


def _bfloat16_bits(numbers: Array) -> Array:
    """Round float32 to the nearest bfloat16, ties to even, and return its bits."""
    bits = numbers.view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(numbers), 0x7FC0, rounded).astype(np.uint16)


def resize(
    tensor: torch.Tensor,
    size: Sequence[int],
    *,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """Give a tensor another size. If its storage is too small for that, it gets a new one."""
    storage, offset = tensor.untyped_storage(), tensor.storage_offset()
    needed = (offset + math.prod(size)) * tensor.itemsize
    if needed > storage.nbytes():
        old = _buffer(tensor)
        storage = new_storage(needed)
        storage.buffer[: old.size] = old
    return set_storage(tensor, storage, offset, size, contiguous_strides(size, memory_format))


def resize_output(output: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    """Give an output that the caller brought the size of the result, with PyTorch's warning."""
    if output.shape == size:
        return output
    if output.numel():
        warnings.warn(
            f"An output with one or more elements was resized since it had shape "
            f"{list(output.shape)}, which does not match the required output shape {list(size)}",
            stacklevel=2,
        )
    return resize(output, size)
