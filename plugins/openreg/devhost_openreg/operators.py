"""An operator of the device's own, from Python: the template for a plugin's operators.

``torch.ops.openreg.round_ste(x)`` rounds to whole numbers and passes gradients through unchanged
(the straight-through estimator of Bengio, Léonard and Courville, 2013, arXiv:1308.3432), which is
what quantization-aware training needs. The template in C++ is csrc/kernels/custom_ops.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from devhost import KernelRegistry


def _round_ste(x: torch.Tensor) -> torch.Tensor:
    return torch.round(x)


def _round_ste_meta(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class _RoundSte(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
        # On to the device's kernel. PyTorch has no public name for this.
        with torch._C._AutoDispatchBelowAutograd():  # noqa: SLF001
            return torch.ops.openreg.round_ste(x)

    @staticmethod
    def backward(_ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> torch.Tensor:
        return grad


def register(registry: KernelRegistry) -> None:
    """Define the operator, and give it a kernel, a shape function and a derivative."""
    name = registry.define("openreg::round_ste(Tensor x) -> Tensor")
    registry.impl(name, _round_ste)
    registry.impl(name, _round_ste_meta, "Meta")
    registry.impl(name, _RoundSte.apply, "AutogradPrivateUse1")
