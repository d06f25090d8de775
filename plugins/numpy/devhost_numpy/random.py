"""Random numbers: the device's generator, and the operators that draw from it.

The state of a generator is PyTorch's, which `torch.Generator` and `torch.manual_seed` need, and so
PyTorch draws: on the CPU's tensor over the same bytes. The numbers are the CPU's for the same seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devhost_numpy.kernels import operator
from devhost_numpy.memory import DEVICE, from_array, host, resize_output, values

if TYPE_CHECKING:
    from collections.abc import Callable

    from devhost import KernelRegistry


class Rng:
    """The default generator of the device, apart from the CPU's."""

    def __init__(self) -> None:
        self._generator = torch.Generator()

    def default_generator(self, index: int) -> torch.Generator:
        """Return the generator."""
        return self._generator

    def chosen(self, generator: torch.Generator | None) -> torch.Generator:
        """Return the generator that an operator draws from.

        Raises:
            RuntimeError: The caller has given another than the device's.
        """
        # PyTorch hands over another Python object for the same generator.
        if generator is not None and generator._cdata != self._generator._cdata:
            raise RuntimeError(
                f"Expected a '{DEVICE.type}' device type for generator but found "
                f"'{generator.device.type}'"
            )
        return self._generator


RNG = Rng()

DRAWING = (
    "uniform_",
    "normal_",
    "random_",
    "random_.from",
    "random_.to",
    "bernoulli_.float",
    "bernoulli_.Tensor",
    "bernoulli.out",
    "exponential_",
    "cauchy_",
    "geometric_",
    "log_normal_",
    "multinomial",
    "multinomial.out",
    "normal.Tensor_Tensor",
    "normal.Tensor_Tensor_out",
    "normal.Tensor_float",
    "normal.Tensor_float_out",
    "normal.float_Tensor",
    "normal.float_Tensor_out",
    "poisson",
    "binomial",
    "randperm.generator_out",
    "rrelu_with_noise",
    "rrelu_with_noise_",
    "rrelu_with_noise.out",
    "_standard_gamma",
    "_sample_dirichlet",
)
"""The operators with a generator. Left to the fallback, they would draw from the CPU's."""


def _drawing(name: str) -> Callable[..., Any]:
    """Return the kernel of an operator with a generator."""
    aten = operator(name)
    parameters = [parameter.name for parameter in aten._schema.arguments]

    def kernel(*arguments: Any, **options: Any) -> torch.Tensor:
        given = dict(zip(parameters, arguments, strict=False)) | options
        generator = RNG.chosen(given.pop("generator", None))
        out = given.pop("out", None)
        on_cpu = {key: host(value) for key, value in given.items()}
        if out is not None:  # drawn apart, because the CPU cannot resize what it does not own
            on_cpu["out"] = torch.empty(0, dtype=out.dtype, device="cpu")
        drawn = aten(**on_cpu, generator=generator)
        if out is not None:
            host(resize_output(out, drawn.shape)).copy_(drawn)
            return out
        return given["self"] if drawn is on_cpu.get("self") else drawn.to(DEVICE)

    return kernel


def _native_dropout(
    tensor: torch.Tensor, p: float, train: bool | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Set elements to zero with probability ``p``, and scale the others by ``1 / (1 - p)``."""
    a = values(tensor)
    if train is False:
        return from_array(a, tensor.dtype), from_array(np.ones(a.shape, bool), torch.bool)
    kept = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    mask = kept.bernoulli_(1 - p, generator=RNG.chosen(None)).bool().numpy()
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return from_array(a * mask * a.dtype.type(scale), tensor.dtype), from_array(mask, torch.bool)


def register(registry: KernelRegistry) -> None:
    """Register the kernels."""
    for name in DRAWING:
        registry.impl(f"aten::{name}", _drawing(name))
    registry.impl("aten::native_dropout", _native_dropout)
