"""Automatic mixed precision: what the plugin's policy says about data types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from devhost import torch_compat

if TYPE_CHECKING:
    from devhost.types import AmpPolicy

AUTOCAST_KEY = "AutocastPrivateUse1"


class Amp:
    """The functions of ``torch.<name>`` about autocast.

    Args:
        policy: The plugin's policy.
    """

    def __init__(self, policy: AmpPolicy) -> None:
        self._policy = policy
        self._library: torch.library.Library | None = None

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        """Return the data types that ``torch.autocast(name)`` accepts.

        Source: ``torch.utils.rename_privateuse1_backend``, note on AMP.
        """
        self.fall_through()  # torch.autocast asks this first, also without a device tensor in sight
        return list(self._policy.supported_dtypes)

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Return whether autocast accepts bfloat16.

        Args:
            including_emulation: Accepted because torch.cuda's function has it; makes no difference.
        """
        return torch.bfloat16 in self._policy.supported_dtypes

    def fall_through(self) -> None:
        """Let operators without a cast of their own run unchanged under autocast.

        PyTorch does this for its own devices. A plugin that has done it in C++ is left alone. It
        takes PyTorch 2.5 ms to tell all its operators, which `import torch` should not pay for: it
        is done before autocast or the device is first used.
        """
        if self._library is None and not torch_compat.has_fallback(AUTOCAST_KEY):
            self._library = torch.library.Library("_", "IMPL")  # "_" means every operator
            self._library.fallback(torch.library.fallthrough_kernel, AUTOCAST_KEY)
