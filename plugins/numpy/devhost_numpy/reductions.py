"""Operators along dimensions: sums, extremes, statistics, running sums, sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from devhost_numpy.kernels import register as register_table
from devhost_numpy.memory import DTYPES, compute_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from devhost import KernelRegistry
    from devhost_numpy.memory import Array

    Dims = int | Sequence[int] | None


def axes(a: Array, dim: Dims) -> tuple[int, ...] | None:
    """Return NumPy's axes for PyTorch's dimensions: none given means all of them.

    A single number has no axis for NumPy, and dimension 0 for PyTorch.
    """
    if dim is None or a.ndim == 0:
        return None
    return (dim,) if isinstance(dim, int) else tuple(dim) or None


def _along(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction with PyTorch's signature. The output has its ``dtype`` already."""

    def reduction(a: Array, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Any:
        return function(a, axis=axes(a, dim), keepdims=keepdim and a.ndim > 0)

    return reduction


def _running(function: np.ufunc) -> Callable[..., Array]:
    def accumulation(a: Array, dim: int, dtype: Any = None) -> Array:
        return function.accumulate(a, axis=dim) if a.ndim else a

    return accumulation


def _position(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what finds where extreme values are; NumPy takes one axis for that."""

    def reduction(a: Array, dim: int | None = None, keepdim: bool = False) -> Any:
        return function(a, axis=dim if a.ndim else None, keepdims=keepdim and a.ndim > 0)

    return reduction


def _extreme(function: Callable[..., Any]) -> Callable[..., tuple[Array, Array]]:
    """Return what finds extreme values along a dimension, and where they are."""

    def reduction(a: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
        if a.ndim == 0:
            return a, np.zeros((), np.int64)
        indices = function(a, axis=dim, keepdims=True)
        found = np.take_along_axis(a, indices, dim)
        return (found, indices) if keepdim else (found.squeeze(dim), indices.squeeze(dim))

    return reduction


def _whole(function: Callable[..., Any]) -> Callable[[Array], Any]:
    def reduction(a: Array) -> Any:
        if a.size == 0:
            raise RuntimeError("Expected reduction dim to be specified for input.numel() == 0")
        return function(a)

    return reduction


_mean = _along(np.mean)


def _variance(a: Array, dim: Dims = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    axis = axes(a, dim)
    count = a.size if axis is None else np.prod([a.shape[i] for i in axis])
    squares = np.abs(a - np.mean(a, axis=axis, keepdims=True)) ** 2
    divisor = max(count - (1 if correction is None else correction), 0)
    total = np.sum(squares, axis=axis, keepdims=keepdim and a.ndim > 0)
    return total / squares.dtype.type(divisor)


def _deviation(a: Array, dim: Dims = None, **options: Any) -> Any:
    return np.sqrt(_variance(a, dim, **options))


def _with_mean(statistic: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    def reduction(
        a: Array, dim: Dims = None, *, correction: Any = None, keepdim: bool = False
    ) -> tuple[Any, Any]:
        found = statistic(a, dim, correction=correction, keepdim=keepdim)
        return found, _mean(a, dim, keepdim)

    return reduction


def _norm(
    a: Array,
    order: Any = 2,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> Any:
    sizes = np.abs(a if dtype is None else a.astype(DTYPES[compute_dtype(dtype)]))
    options: dict[str, Any] = {"axis": axes(a, dim), "keepdims": keepdim and a.ndim > 0}
    if order in (np.inf, -np.inf):
        return (np.max if order > 0 else np.min)(sizes, **options)
    if order == 0:
        return np.sum(sizes != 0, **options)
    if order == 2:
        return np.sqrt(np.sum(sizes * sizes, **options))
    return np.sum(sizes**order, **options) ** (1 / order)


def _sort(
    a: Array, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Array, Array]:
    """Sort. NaN counts as the largest number, as in NumPy; equal numbers keep their order."""
    if a.ndim == 0:
        return a, np.zeros((), np.int64)
    if descending:
        backwards = np.flip(np.argsort(np.flip(a, dim), dim, kind="stable"), dim)
        indices = a.shape[dim] - 1 - backwards
    else:
        indices = np.argsort(a, dim, kind="stable")
    return np.take_along_axis(a, indices, dim), indices


def _topk(
    a: Array,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002
) -> tuple[Array, Array]:
    if a.ndim == 0:
        return a, np.zeros((), np.int64)
    found, indices = _sort(a, dim=dim, descending=largest)
    first = np.arange(k)
    return np.take(found, first, dim), np.take(indices, first, dim)


TO_OUTPUT = {
    "sum.IntList_out": _along(np.sum),
    "mean.out": _along(np.mean),
    "prod.int_out": _along(np.prod),
    "cumsum.out": _running(np.add),
    "cumprod.out": _running(np.multiply),
}
"""Computed in the data type of the output: in int64 for small integers."""

UNCHANGED = {
    "any.out": _along(np.any),
    "any.all_out": _along(np.any),
    "all.out": _along(np.all),
    "all.all_out": _along(np.all),
    "linalg_vector_norm.out": _norm,
    "var.correction": _variance,
    "var.correction_out": _variance,
    "std.correction": _deviation,
    "std.correction_out": _deviation,
    "var_mean.correction": _with_mean(_variance),
    "std_mean.correction": _with_mean(_deviation),
}

ORDERED = {
    "amax.out": _along(np.max),
    "amin.out": _along(np.min),
    "argmax.out": _position(np.argmax),
    "argmin.out": _position(np.argmin),
    "max": _whole(np.max),
    "min": _whole(np.min),
    "max.dim_max": _extreme(np.argmax),
    "min.dim_min": _extreme(np.argmin),
    "sort.values_stable": _sort,
    "topk.values": _topk,
}
"""Of real numbers only."""


def register(registry: KernelRegistry) -> None:
    """Register the kernels."""
    register_table(registry, TO_OUTPUT, operands="output")
    register_table(registry, UNCHANGED)
    register_table(registry, ORDERED, ordered=True)
