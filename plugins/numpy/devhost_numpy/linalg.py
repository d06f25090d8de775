"""Products of vectors and matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from devhost_numpy.kernels import register as register_table

if TYPE_CHECKING:
    from devhost import KernelRegistry
    from devhost_numpy.memory import Array


def _add_product(addend: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """Return ``beta * addend + alpha * (a @ b)``; with ``beta`` 0 the addend may be NaN."""
    product = np.matmul(a, b)
    if alpha != 1:
        product = product * np.asarray(alpha).astype(product.dtype)
    if beta == 0:
        return product
    return product + (addend if beta == 1 else addend * np.asarray(beta).astype(product.dtype))


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(np.dot(a, b))


PRODUCTS = {
    "mm.out": np.matmul,
    "bmm.out": np.matmul,
    "addmm.out": _add_product,
    "addmv.out": _add_product,
    "baddbmm.out": _add_product,
    "dot": _dot,
    "vdot": lambda a, b: np.asarray(np.vdot(a, b)),
}


def register(registry: KernelRegistry) -> None:
    """Register the kernels."""
    register_table(registry, PRODUCTS)
