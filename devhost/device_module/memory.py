"""Memory statistics: those of ``torch.accelerator``, for one device type.

They are real for every plugin whose allocator is a ``c10::DeviceAllocator``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from devhost import torch_compat

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Iterator

    from devhost.device_module.devices import Device, Devices
    from devhost.device_module.lazy_init import LazyInit


class Memory:
    """The functions of ``torch.<name>`` about memory. Sizes are in bytes.

    Each takes the device as index, name, ``torch.device`` or None for the current one, and raises
    ValueError for another type, torch.AcceleratorError for a device that does not exist, and
    NotImplementedError if the plugin's allocator keeps no statistics.

    Args:
        plugin: Who the allocator belongs to, for the message.
        devices: The functions of the same device module.
        lazy: The device's lazy initialisation.
    """

    def __init__(self, plugin: str, devices: Devices, lazy: LazyInit) -> None:
        self._plugin = plugin
        self._devices = devices
        self._lazy = lazy

    def memory_allocated(self, device: Device = None) -> int:
        """Return how much memory tensors occupy."""
        with self._index(device) as index:
            return torch.accelerator.memory_allocated(index)

    def max_memory_allocated(self, device: Device = None) -> int:
        """Return the most memory that tensors have occupied since the last reset."""
        with self._index(device) as index:
            return torch.accelerator.max_memory_allocated(index)

    def memory_reserved(self, device: Device = None) -> int:
        """Return how much memory the allocator holds, in use or cached."""
        with self._index(device) as index:
            return torch.accelerator.memory_reserved(index)

    def max_memory_reserved(self, device: Device = None) -> int:
        """Return the most memory that the allocator has held since the last reset."""
        with self._index(device) as index:
            return torch.accelerator.max_memory_reserved(index)

    def memory_stats(self, device: Device = None) -> OrderedDict[str, Any]:
        """Return all statistics; their names are those of ``torch.accelerator.memory_stats``."""
        with self._index(device) as index:
            return torch.accelerator.memory_stats(index)

    def reset_peak_memory_stats(self, device: Device = None) -> None:
        """Set every peak to its current value."""
        with self._index(device) as index:
            torch.accelerator.reset_peak_memory_stats(index)

    def reset_accumulated_memory_stats(self, device: Device = None) -> None:
        """Set every total of allocated and freed to zero."""
        with self._index(device) as index:
            torch.accelerator.reset_accumulated_memory_stats(index)

    def mem_get_info(self, device: Device = None) -> tuple[int, int]:
        """Return the free and the total memory of a device. Initialises the device."""
        self._lazy.init()
        with self._index(device) as index:
            free, total = torch.accelerator.get_memory_info(index)
            return free, total

    def empty_cache(self) -> None:
        """Give cached memory that is not in use back to the device."""
        with self._explained():
            torch.accelerator.empty_cache()

    @contextlib.contextmanager
    def _index(self, device: Device) -> Iterator[int]:
        with self._explained():
            yield self._devices.existing_index(device)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if not torch_compat.is_missing_device_allocator(error):
                raise
            raise NotImplementedError(
                f"device plugin {self._plugin} has no memory statistics: its allocator is not a "
                "c10::DeviceAllocator"
            ) from None
