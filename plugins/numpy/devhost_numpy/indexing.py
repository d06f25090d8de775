"""Operators that choose, move and place elements, and ``arange``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from devhost_numpy.elementwise import scaled
from devhost_numpy.kernels import register as register_table
from devhost_numpy.memory import resize_output, store

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from devhost import KernelRegistry
    from devhost_numpy.memory import Array


def _key(indices: Sequence[Array | None]) -> tuple[Any, ...]:
    return tuple(slice(None) if index is None else index for index in indices)


def _checked(index: Array) -> Array:
    """Return an index in at least one dimension. To NumPy negative ones count from the end."""
    if (index < 0).any():
        raise IndexError(f"index {index.min()} is out of bounds: it is negative")
    return np.atleast_1d(index)


def _grid(index: Array, dim: int) -> tuple[Array, ...]:
    """Return a key that picks ``index`` along ``dim`` and stays in place along the others."""
    key = list(np.ogrid[tuple(map(slice, index.shape))])
    key[dim] = index
    return tuple(key)


def _gather(a: Array, dim: int, index: Array, *, sparse_grad: bool = False) -> Array:
    if index.size == 0:
        return np.empty(index.shape, a.dtype)
    return np.atleast_1d(a)[_grid(_checked(index), dim)].reshape(index.shape)


def _scatter(a: Array, dim: int, index: Array, source: Any, *, accumulate: bool = False) -> Array:
    if index.size == 0:
        return a
    result = np.atleast_1d(a.copy())
    index = _checked(index)
    key = _grid(index, dim)
    if isinstance(source, np.ndarray):
        source = np.atleast_1d(source)[tuple(map(slice, index.shape))]
    if accumulate:
        np.add.at(result, key, source)
    else:
        result[key] = source
    return result.reshape(a.shape)


def _scatter_add(a: Array, dim: int, index: Array, source: Array) -> Array:
    return _scatter(a, dim, index, source, accumulate=True)


def _index_select(a: Array, dim: int, index: Array) -> Array:
    return np.take(a, _checked(index), dim) if a.ndim else a


def _index_add(a: Array, dim: int, index: Array, source: Array, *, alpha: Any = 1) -> Array:
    result = np.atleast_1d(a.copy())
    rows = np.moveaxis(np.atleast_1d(scaled(source, alpha)), dim, 0)
    np.add.at(np.moveaxis(result, dim, 0), _checked(index), rows)
    return result.reshape(a.shape)


def _embedding_backward(
    grad: Array, indices: Array, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    rows = grad.reshape(-1, grad.shape[-1])
    flat = indices.reshape(-1)
    used = flat != padding_idx
    if scale_grad_by_freq:
        rows = rows / np.bincount(flat, minlength=num_weights)[flat][:, None].astype(rows.dtype)
    result = np.zeros((num_weights, grad.shape[-1]), grad.dtype)
    np.add.at(result, flat[used], rows[used])
    return result


def _index_put(
    a: Array,
    indices: Sequence[Array | None],
    new: Array,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Array:
    result = a.copy()
    if accumulate:
        np.add.at(result, _key(indices), new)
    else:
        result[_key(indices)] = new
    return result


def _masked_fill(a: Array, mask: Array, value: Any) -> Array:
    if mask.dtype != bool:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got {mask.dtype}")
    result = a.copy()
    np.copyto(result, value, where=mask, casting="unsafe")
    return result


def _masked_select(a: Array, mask: Array) -> Array:
    a, mask = np.broadcast_arrays(a, mask)
    return a[mask]


def _cat(arrays: Sequence[Array], dim: int = 0) -> Array:
    # PyTorch leaves out tensors of shape (0,), whatever the shape of the others.
    return np.concatenate([a for a in arrays if a.shape != (0,)] or arrays[:1], dim)


def _arange(start: Any, end: Any, step: Any = 1, *, out: torch.Tensor) -> torch.Tensor:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    numbers = np.arange(start, end, step)
    store(resize_output(out, numbers.shape), numbers)
    return out


COMMON = {"where.self": np.where, "where.self_out": np.where}

TO_OUTPUT = {"cat.out": _cat}

UNCHANGED = {
    "index.Tensor_out": lambda a, indices: a[_key(indices)],
    "_index_put_impl_": _index_put,
    "index_select": _index_select,
    "index_add.out": _index_add,
    "gather.out": _gather,
    "scatter.src_out": _scatter,
    "scatter.value_out": _scatter,
    "scatter_add.out": _scatter_add,
    "embedding_dense_backward": _embedding_backward,
    "masked_fill_.Scalar": _masked_fill,
    "masked_fill_.Tensor": _masked_fill,
    "masked_select": _masked_select,
    "nonzero": lambda a: np.argwhere(a).astype(np.int64),
    "flip": lambda a, dims: np.flip(a, tuple(dims)),
    "roll": lambda a, shifts, dims=(): np.roll(a, tuple(shifts), tuple(dims) or None),
    "tril.out": np.tril,
    "triu.out": np.triu,
    "equal": lambda a, b: bool(np.array_equal(a, b)),
}


def register(registry: KernelRegistry) -> None:
    """Register the kernels."""
    register_table(registry, COMMON, operands="common")
    register_table(registry, TO_OUTPUT, operands="output")
    register_table(registry, UNCHANGED)
    registry.impl("aten::arange.start_out", _arange)
