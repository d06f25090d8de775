"""Products of vectors and matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from devhost_numpy.elementwise import scaled
from devhost_numpy.kernels import register as register_table

if TYPE_CHECKING:
    from devhost import KernelRegistry
    from devhost_numpy.memory import Array


def _add_product(addend: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """Return ``beta * addend + alpha * (a @ b)``; if ``beta`` is 0 the addend may be anything."""
    product = scaled(np.matmul(a, b), alpha)
    return product if beta == 0 else product + scaled(addend, beta)


PRODUCTS = {
    "mm.out": np.matmul,
    "bmm.out": np.matmul,
    "addmm.out": _add_product,
    "addmv.out": _add_product,
    "baddbmm.out": _add_product,
    "dot": np.dot,
    "vdot": np.vdot,
}


def register(registry: KernelRegistry) -> None:
    """Register the kernels."""
    register_table(registry, PRODUCTS)
