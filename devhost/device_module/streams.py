"""Streams and events: PyTorch's generic classes, for this device.

``torch.Stream`` and ``torch.Event`` work with every device whose plugin registers a device guard
with streams, so ``torch.<name>.Stream`` and ``Event`` are those classes, and what these functions
return are instances of them. Source of the semantics: ``torch.cuda``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch

from devhost import torch_compat

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from devhost.device_module.devices import Device, Devices
    from devhost.device_module.lazy_init import LazyInit


class Streams:
    """The functions of ``torch.<name>`` about streams.

    Args:
        name: Device name.
        devices: The functions of the same device module.
        lazy: The device's lazy initialisation.
    """

    def __init__(self, name: str, devices: Devices, lazy: LazyInit) -> None:
        self._name = name
        self._devices = devices
        self._lazy = lazy

    def current_stream(self, device: Device = None) -> torch.Stream:
        """Return a device's current stream in this thread.

        Args:
            device: The device; None for the current one.

        Raises:
            ValueError: ``device`` is of another type.
            torch.AcceleratorError: There is no such device.
        """
        self._lazy.init()
        return torch.accelerator.current_stream(self._devices.existing_index(device))

    def default_stream(self, device: Device = None) -> torch.Stream:
        """Return a device's default stream. Arguments and errors as for current_stream()."""
        self._lazy.init()
        return torch_compat.default_stream(self._devices.existing_index(device))

    def set_stream(self, stream: torch.Stream | None) -> None:
        """Make ``stream`` the current one of its device, and that the current device.

        Using ``with torch.<name>.stream(stream)`` is usually better.

        Args:
            stream: The stream; None changes nothing.

        Raises:
            ValueError: The stream is one of another device type.
        """
        if stream is not None:
            self._require_own(stream)
            self._lazy.init()
            torch.accelerator.set_stream(stream)

    def stream(self, stream: torch.Stream | None) -> AbstractContextManager[object]:
        """Return a context manager in which ``stream`` is current.

        Args:
            stream: The stream; None changes nothing.

        Raises:
            ValueError: The stream is one of another device type.
        """
        if stream is None:
            return contextlib.nullcontext()
        self._require_own(stream)
        return stream

    def is_current_stream_capturing(self) -> bool:
        """Return whether the current stream records a graph. False before the first use."""
        if not self._lazy.is_initialized():
            return False
        return bool(torch.accelerator.current_stream().is_capturing())

    def _require_own(self, stream: torch.Stream) -> None:
        if stream.device.type != self._name:
            raise ValueError(f"Expected a {self._name} stream, but got one of {stream.device}")
