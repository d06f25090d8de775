"""Automatic mixed precision: what the plugin's policy says about data types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from devhost.types import AmpPolicy


class Amp:
    """The functions of ``torch.<name>`` about autocast.

    Args:
        policy: The plugin's policy.
    """

    def __init__(self, policy: AmpPolicy) -> None:
        self._policy = policy

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        """Return the data types that ``torch.autocast(name)`` accepts.

        Source: ``torch.utils.rename_privateuse1_backend``, note on AMP.
        """
        return list(self._policy.supported_dtypes)

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Return whether autocast accepts bfloat16.

        Args:
            including_emulation: Accepted because torch.cuda's function has it; makes no difference.
        """
        return torch.bfloat16 in self._policy.supported_dtypes
