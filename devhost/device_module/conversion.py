"""Keeps a module's parameters what they are when the module moves to the device or back.

``module.to(device)`` puts new bytes into the parameters it has, so that an optimizer made before
and weights shared between layers stay valid. PyTorch does that by assigning ``param.data``, which
only works between devices on a list in its C++ that out-of-tree devices are not on; for others it
quietly makes new parameters. Its other way, ``torch.utils.swap_tensors``, works for every device,
and is switched on here for just those conversions.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def keep_parameters(device_type: str) -> None:
    """Let ``torch.nn.Module`` swap parameters in conversions to and from ``device_type``."""
    module_class: Any = torch.nn.Module  # it is untyped, and a method of it is replaced
    convert: Callable[..., torch.nn.Module] = module_class._apply

    @functools.wraps(convert)
    def _apply(
        self: torch.nn.Module, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True
    ) -> torch.nn.Module:
        swapping = torch.__future__.get_swap_module_params_on_conversion()
        if swapping or not _crosses(self, fn, device_type):
            return convert(self, fn, recurse)
        torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            return convert(self, fn, recurse)
        finally:
            torch.__future__.set_swap_module_params_on_conversion(False)

    module_class._apply = _apply


def _crosses(
    module: torch.nn.Module, fn: Callable[[torch.Tensor], torch.Tensor], device_type: str
) -> bool:
    """Say whether ``fn`` moves the module's parameters between the device and another."""
    parameter = next(module.parameters(), None)
    if parameter is None:
        return False
    with torch.no_grad():
        sample = torch.empty(0, dtype=parameter.dtype, device=parameter.device)
        kinds = {sample.device.type, fn(sample).device.type}
    return len(kinds) == 2 and device_type in kinds
