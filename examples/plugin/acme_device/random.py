"""Random numbers: the device's generator, and the operators that draw from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from devhost import KernelRegistry


class Rng:
    """One generator per device; acme has one device.

    The generator is a CPU generator of the device's own: what the program draws on the CPU does not
    move it. A plugin in C++ derives a class from `c10::GeneratorImpl` instead, and then
    `torch.Generator(device=...)` works as well.
    """

    def __init__(self) -> None:
        self._generators = (torch.Generator(),)

    def default_generator(self, index: int) -> torch.Generator:
        """Return the generator of device `index`."""
        return self._generators[index]

    def chosen(self, generator: torch.Generator | None) -> torch.Generator:
        """Return the generator that an operator draws from.

        Raises:
            RuntimeError: The caller has given one that is not the device's.
        """
        if generator is None:
            return self.default_generator(0)
        # PyTorch hands over another Python object for the same generator.
        if generator._cdata not in (own._cdata for own in self._generators):
            raise RuntimeError(
                f"Expected a 'acme' device type for generator but found '{generator.device.type}'"
            )
        return generator


RNG = Rng()


def _filled(draw: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return a kernel that fills a tensor of the device in place."""

    def kernel(
        tensor: Any, *arguments: Any, generator: torch.Generator | None = None
    ) -> torch.Tensor:
        draw(tensor.data_on_host, *arguments, generator=RNG.chosen(generator))
        filled: torch.Tensor = tensor
        return filled

    return kernel


def register(registry: KernelRegistry) -> None:
    """Register the operators that torch.rand, randn, randint and bernoulli_ end in."""
    registry.impl("aten::uniform_", _filled(torch.Tensor.uniform_))
    registry.impl("aten::normal_", _filled(torch.Tensor.normal_))
    registry.impl("aten::random_.from", _filled(torch.Tensor.random_))
    registry.impl("aten::bernoulli_.float", _filled(torch.Tensor.bernoulli_))
