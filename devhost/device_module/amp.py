"""Automatic mixed precision: what the plugin's policy says about data types."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import torch

from devhost.torch_compat import SupportedDtypes

if TYPE_CHECKING:
    from devhost.types import AmpPolicy


class Amp:
    """The functions of ``torch.<name>`` about autocast.

    Args:
        name: Device name.
        policy: The plugin's policy.
    """

    def __init__(self, name: str, policy: AmpPolicy) -> None:
        self._name = name
        self._policy = policy
        self._libraries: list[torch.library.Library] | None = None
        self._lock = threading.Lock()

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        """Return the data types that ``torch.autocast(name)`` accepts.

        Source: ``torch.utils.rename_privateuse1_backend``, note on AMP.
        """
        self.prepare()  # torch.autocast asks this first, also without a device tensor in sight
        return SupportedDtypes(self._policy.supported_dtypes)

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        """Return whether autocast accepts bfloat16.

        Args:
            including_emulation: Accepted because torch.cuda's function has it; makes no difference.
        """
        return torch.bfloat16 in self._policy.supported_dtypes

    def prepare(self) -> None:
        """Register the policy's casts, and let every other operator run unchanged under autocast.

        PyTorch takes milliseconds for it, which `import torch` should not pay for: it is done
        before autocast or the device is first used.
        """
        from devhost.amp import register_casts  # not loaded for nothing

        with self._lock:
            if self._libraries is None:
                self._libraries = register_casts(self._policy, self._name)
