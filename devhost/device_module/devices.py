"""Devices: counting, choosing and describing them. Source of the semantics: ``torch.cuda``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import torch

if TYPE_CHECKING:
    from devhost.device_module.lazy_init import LazyInit
    from devhost.types import DeviceProperties, DeviceRuntime

Device: TypeAlias = torch.device | str | int | None
"""What names a device: ``torch.device``, "name" or "name:index", an index, None for the current."""


class Devices:
    """The functions of ``torch.<name>`` about devices as such.

    Args:
        name: Device name.
        plugin: Who supplies it, as text for messages.
        runtime: The plugin's runtime.
        lazy: The device's lazy initialisation.
    """

    def __init__(self, name: str, plugin: object, runtime: DeviceRuntime, lazy: LazyInit) -> None:
        self.name = name
        self._plugin = plugin
        self._runtime = runtime
        self._lazy = lazy

    def is_available(self) -> bool:
        """Return whether the device can be used. Does not initialise it."""
        return self._runtime.device_count() > 0

    def set_device(self, device: Device) -> None:
        """Make ``device`` this thread's current device.

        Args:
            device: The device, with an index. A negative index does nothing, as in torch.cuda.

        Raises:
            ValueError: ``device`` is of another type, or has no index.
            torch.AcceleratorError: There is no such device.
        """
        index = self.index(device)
        if index >= 0:
            self._lazy.init()
            self._runtime.set_device(self._checked(index))

    def synchronize(self, device: Device = None) -> None:
        """Wait until all work on all streams of a device is done.

        Args:
            device: The device; None for the current one.

        Raises:
            ValueError: ``device`` is of another type.
            torch.AcceleratorError: There is no such device.
        """
        self._lazy.init()
        self._runtime.synchronize(self.existing_index(device))

    def get_device_properties(self, device: Device = None) -> DeviceProperties:
        """Return the plugin's properties object of a device, with ``name`` and ``total_memory``.

        Args:
            device: The device; None for the current one.

        Raises:
            ValueError: ``device`` is of another type.
            AssertionError: There is no such device. (So in torch.cuda.)
        """
        self._lazy.init()
        index = self.index(device, optional=True)
        if not 0 <= index < self._runtime.device_count():
            raise AssertionError(f"Invalid device id: {self._out_of_range(index)}")
        return self._runtime.get_device_properties(index)

    def get_device_name(self, device: Device = None) -> str:
        """Return the name of a device. Raises as get_device_properties() does."""
        return self.get_device_properties(device).name

    def get_device_capability(self, device: Device = None) -> dict[str, Any]:
        """Return what a device can do, as ``torch.accelerator.get_device_capability`` does.

        Args:
            device: The device; None for the current one.

        Returns:
            A dictionary with ``supported_dtypes``, a set of torch.dtype.

        Raises:
            ValueError: ``device`` is of another type.
            torch.AcceleratorError: There is no such device.
            RuntimeError: The plugin's device guard does not tell.
        """
        self._lazy.init()
        return torch.accelerator.get_device_capability(self.existing_index(device))

    def can_device_access_peer(self, device: Device, peer_device: Device) -> bool:
        """Return whether kernels of one device can use the memory of another.

        Args:
            device: The device whose kernels are meant.
            peer_device: The device whose memory is meant.

        Raises:
            ValueError: One of them is of another type.
            AssertionError: One of them does not exist. (So in torch.cuda.)
            NotImplementedError: The plugin's runtime has no ``can_access_peer``.
        """
        self._lazy.init()
        can_access_peer = getattr(self._runtime, "can_access_peer", None)
        if can_access_peer is None:
            raise NotImplementedError(
                f"device plugin {self._plugin} does not tell which devices can access each other: "
                "its runtime has no can_access_peer(index, peer)"
            )
        indices = (self.index(device, optional=True), self.index(peer_device, optional=True))
        for index in indices:
            if not 0 <= index < self._runtime.device_count():
                raise AssertionError(f"Invalid device id: {self._out_of_range(index)}")
        return bool(can_access_peer(*indices))

    def index(self, device: object, optional: bool = False, allow_cpu: bool = False) -> int:
        """Return the index that ``device`` means. Not checked against the number of devices.

        Compare ``torch.cuda._utils._get_device_index``, which torch.load() calls by that name.

        Args:
            device: The device.
            optional: Take a device without index, and None, for the current device.
            allow_cpu: Return -1 for the CPU.

        Raises:
            ValueError: ``device`` is of another type, or has no index and must have one.
        """
        if isinstance(device, int):
            return device
        if isinstance(device, str):
            device = torch.device(device)
        if isinstance(device, torch.device):
            if allow_cpu and device.type == "cpu":
                return -1
            if device.type != self.name:
                raise ValueError(f"Expected a {self.name} device, but got: {device}")
            if device.index is not None:
                return device.index
        if not optional or not (device is None or isinstance(device, torch.device)):
            raise ValueError(
                f"Expected a torch.device with a specified index or an integer, but got: {device!r}"
            )
        return self._runtime.current_device()

    def exchange(self, index: int) -> int:
        """Make device ``index`` current and return the previous one; -1 and no change if < 0.

        Raises:
            torch.AcceleratorError: There is no such device.
        """
        if index < 0:
            return -1
        self._lazy.init()
        return self._runtime.exchange_device(self._checked(index))

    def existing_index(self, device: Device) -> int:
        """Return the index of a device that exists; of the current one if ``device`` names none.

        Raises:
            ValueError: ``device`` is of another type.
            torch.AcceleratorError: There is no such device.
        """
        return self._checked(self.index(device, optional=True))

    def _checked(self, index: int) -> int:
        if not 0 <= index < self._runtime.device_count():
            raise torch.AcceleratorError(self._out_of_range(index))
        return index

    def _out_of_range(self, index: int) -> str:
        count = self._runtime.device_count()
        have = "there is 1 device" if count == 1 else f"there are {count} devices"
        return f"{self.name}: invalid device ordinal {index}, {have}"


def device_contexts(devices: Devices, name: str) -> tuple[type, type]:
    """Return the classes ``torch.<name>.device`` and ``torch.<name>.device_of``.

    Args:
        devices: The functions of the same device module.
        name: Device name.
    """

    class device:  # noqa: N801 - the name that torch.cuda has
        """Context manager that changes this thread's current device.

        Args:
            device: The device. None and negative indices change nothing.

        Raises:
            ValueError: ``device`` is of another type.
            torch.AcceleratorError: There is no such device; raised on entry.
        """

        def __init__(self, device: Device) -> None:
            self.idx = -1 if device is None else devices.index(device, optional=True)
            self.prev_idx = -1

        def __enter__(self) -> None:
            self.prev_idx = devices.exchange(self.idx)

        def __exit__(self, *exc_info: object) -> None:
            devices.exchange(self.prev_idx)

    class device_of(device):  # noqa: N801
        """Context manager that makes the device of a tensor or storage the current one.

        Args:
            obj: A tensor or storage. One that is not on this device type changes nothing.
        """

        def __init__(self, obj: torch.Tensor | torch.UntypedStorage) -> None:
            super().__init__(obj.get_device() if obj.device.type == name else -1)

    return device, device_of
