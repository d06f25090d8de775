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
    from collections.abc import Callable, Iterator, Mapping

    from devhost.device_module.devices import Device, Devices
    from devhost.device_module.lazy_init import LazyInit
    from devhost.types import DeviceRuntime

STATISTICS_NAMES = (
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_peak_memory_stats",
    "reset_accumulated_memory_stats",
    "mem_get_info",
    "device_memory_used",
    "empty_cache",
)
"""Functions of Memory that need an allocator which is a ``c10::DeviceAllocator``."""


class Memory:
    """The functions of ``torch.<name>`` about memory. Sizes are in bytes.

    Each takes the device as index, name, ``torch.device`` or None for the current one, and raises
    ValueError for another type, torch.AcceleratorError for a device that does not exist, and
    NotImplementedError if the plugin's allocator keeps no statistics.

    Args:
        plugin: Who the allocator belongs to, as text for the message.
        runtime: The plugin's runtime.
        devices: The functions of the same device module.
        lazy: The device's lazy initialisation.
    """

    def __init__(
        self, plugin: object, runtime: DeviceRuntime, devices: Devices, lazy: LazyInit
    ) -> None:
        self._plugin = plugin
        self._runtime = runtime
        self._fractions: dict[int, float] = {}
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

    def memory_stats_as_nested_dict(self, device: Device = None) -> dict[str, Any]:
        """Return memory_stats() as dictionaries in dictionaries, one level for each dot."""
        nested: dict[str, Any] = {}
        for name, value in self.memory_stats(device).items():
            *path, last = name.split(".")
            level = nested
            for part in path:
                level = level.setdefault(part, {})
            level[last] = value
        return nested

    def memory_summary(self, device: Device = None, abbreviated: bool = False) -> str:
        """Return memory_stats() as a table for people.

        Args:
            device: The device; None for the current one.
            abbreviated: Leave out the rows for small and large blocks.
        """
        with self._index(device) as index:
            stats = torch.accelerator.memory_stats(index)
            return summary(stats, torch.device(self._devices.name, index), abbreviated)

    def set_per_process_memory_fraction(self, fraction: float, device: Device = None) -> None:
        """Let tensors occupy at most this part of a device's memory. Initialises the device.

        Args:
            fraction: From 0 to 1, of the total memory.
            device: The device; None for the current one.

        Raises:
            TypeError: ``fraction`` is not a float.
            ValueError: ``fraction`` is not from 0 to 1.
            NotImplementedError: The plugin's runtime has no ``set_memory_fraction``.
        """
        if not isinstance(fraction, float):
            raise TypeError(f"fraction must be a float, but is {fraction!r}")
        if not 0 <= fraction <= 1:
            raise ValueError(f"fraction must be from 0 to 1, but is {fraction}")
        set_memory_fraction: Callable[[float, int], None] | None = getattr(
            self._runtime, "set_memory_fraction", None
        )
        if set_memory_fraction is None:
            raise NotImplementedError(
                f"device plugin {self._plugin} cannot limit memory: its runtime has no "
                "set_memory_fraction(fraction, index)"
            )
        self._lazy.init()
        with self._index(device) as index:
            set_memory_fraction(fraction, index)
            self._fractions[index] = fraction

    def get_per_process_memory_fraction(self, device: Device = None) -> float:
        """Return what set_per_process_memory_fraction() has set, or 1.0."""
        with self._index(device) as index:
            return self._fractions.get(index, 1.0)

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

    def device_memory_used(self, device: Device = None) -> int:
        """Return how much memory of a device is in use, by whomever. Initialises the device."""
        free, total = self.mem_get_info(device)
        return total - free

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


_ROWS = {
    "allocated_bytes": "Allocated memory",
    "requested_bytes": "Requested memory",
    "active_bytes": "Active memory",
    "reserved_bytes": "Reserved memory",
    "inactive_split_bytes": "Unreleasable memory",
    "allocation": "Allocations",
    "active": "Active blocks",
    "segment": "Reserved segments",
    "inactive_split": "Unreleasable blocks",
}
_POOLS = {"all": "", "large_pool": "  of large blocks", "small_pool": "  of small blocks"}
_COLUMNS = {"current": "now", "peak": "peak", "allocated": "in total", "freed": "freed"}
_COUNTERS = {
    "num_alloc_retries": "requests that the cache was emptied for",
    "num_ooms": "requests that failed",
}


def summary(stats: Mapping[str, Any], device: torch.device, abbreviated: bool) -> str:
    """Return a table of memory statistics. What the allocator does not count is left out.

    Args:
        stats: By the names of ``torch.accelerator.memory_stats``.
        device: For the heading.
        abbreviated: Leave out the rows for small and large blocks.
    """
    counters = (f"{text}: {stats[name]}" for name, text in _COUNTERS.items() if name in stats)
    lines = [f"Memory of {device} (PyTorch's allocator)", "; ".join(counters), ""]
    lines.append(" " * 28 + "".join(f"{heading:>14}" for heading in _COLUMNS.values()))
    for stat, row in _ROWS.items():
        for pool, suffix in _POOLS.items():
            prefix = f"{stat}.{pool}."
            if f"{prefix}current" not in stats or (abbreviated and suffix):
                continue
            show = _size if stat.endswith("bytes") else str
            cells = "".join(f"{show(stats[prefix + column]):>14}" for column in _COLUMNS)
            lines.append(f"{suffix or row:<28}{cells}")
    return "\n".join(lines)


def _size(count: int) -> str:
    """Return a number of bytes, to at least four digits where it has them."""
    size, unit = float(count), 0
    while size >= 10 * 1024 and unit < 4:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"
