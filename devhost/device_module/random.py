"""Random numbers: seeds and states of the default generators.

Derived from ``torch.Generator``, for any plugin. Source of the semantics: ``torch.cuda.random``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devhost.device_module.devices import Device, Devices
    from devhost.device_module.lazy_init import LazyInit
    from devhost.types import DeviceRng, DeviceRuntime


class Random:
    """The functions of ``torch.<name>`` about random numbers.

    Seeds and states that are set before the device is initialised are applied when it is.

    Args:
        name: Device name.
        runtime: The plugin's runtime.
        rng: The plugin's generators.
        devices: The functions of the same device module.
        lazy: The device's lazy initialisation.
    """

    def __init__(
        self, name: str, runtime: DeviceRuntime, rng: DeviceRng, devices: Devices, lazy: LazyInit
    ) -> None:
        self._name = name
        self._runtime = runtime
        self._rng = rng
        self._devices = devices
        self._lazy = lazy

    def manual_seed(self, seed: int) -> None:
        """Seed the generator of the current device.

        Args:
            seed: From -2**63 to 2**64 - 1; negative ones are taken modulo 2**64.

        Raises:
            ValueError: ``seed`` is out of range. (So in torch.manual_seed.)
        """
        seed = _checked_seed(seed)
        if self._runtime.is_in_bad_fork():
            return  # not even the current device may be asked for
        index = self._runtime.current_device()
        self._lazy.call(index, lambda: self._seed(index, seed))

    def manual_seed_all(self, seed: int) -> None:
        """Seed the generators of all devices. Raises as manual_seed() does."""
        seed = _checked_seed(seed)
        self._lazy.call("all", lambda: self._seed_all(seed), replaces_all=True)

    def seed(self) -> None:
        """Seed the generator of the current device with a random number."""
        self.manual_seed(torch.Generator().seed())

    def seed_all(self) -> None:
        """Seed the generators of all devices with one random number."""
        self.manual_seed_all(torch.Generator().seed())

    def initial_seed(self) -> int:
        """Return the seed of the current device's generator. Initialises the device."""
        self._lazy.init()
        return self._rng.default_generator(self._runtime.current_device()).initial_seed()

    def get_rng_state(self, device: Device = None) -> torch.Tensor:
        """Return the state of a device's generator. Initialises the device.

        Args:
            device: The device; None for the current one.

        Returns:
            A tensor of dtype uint8 on the CPU, of a size that depends on the plugin.

        Raises:
            ValueError: ``device`` is of another type.
            torch.AcceleratorError: There is no such device.
        """
        return self.generator(device).get_state()

    def get_rng_state_all(self) -> list[torch.Tensor]:
        """Return the states of all devices' generators, in index order. Initialises the device."""
        return [self.get_rng_state(index) for index in range(self._runtime.device_count())]

    def set_rng_state(self, new_state: torch.Tensor, device: Device = None) -> None:
        """Set the state of a device's generator.

        Args:
            new_state: A state that get_rng_state() returned.
            device: The device; None for the current one.

        Raises:
            TypeError: ``new_state`` is no uint8 tensor on the CPU. (So in torch.set_rng_state.)
            ValueError: ``device`` is of another type.
            torch.AcceleratorError: There is no such device.
            DeferredCallError: The state, set before the device was initialised, does not fit;
                raised when it is initialised.
        """
        _check_state(new_state)
        index = self._devices.existing_index(device)
        state = new_state.clone()  # the caller may change its tensor before the call runs
        self._lazy.call(index, lambda: self._set_state(index, state))

    def set_rng_state_all(self, new_states: Iterable[torch.Tensor]) -> None:
        """Set the states of the generators of devices 0, 1, ...

        If one of the states does not fit, no generator is changed.

        Args:
            new_states: States that get_rng_state_all() returned, one per device; devices beyond
                them keep theirs.

        Raises:
            TypeError: One of them is no uint8 tensor on the CPU.
            torch.AcceleratorError: There are more states than devices.
            RuntimeError: One of them is no state of the plugin's generators.
            DeferredCallError: The same, for states that were set before the device was
                initialised; raised when it is initialised.
        """
        states = list(new_states)
        for index, state in enumerate(states):
            _check_state(state)
            self._devices.existing_index(index)
        if not self._lazy.is_initialized():
            for index, state in enumerate(states):
                self.set_rng_state(state, index)
            return
        before = [self.get_rng_state(index) for index in range(len(states))]
        try:
            for index, state in enumerate(states):
                self._set_state(index, state)
        except BaseException:
            for index, state in enumerate(before):
                self._set_state(index, state)
            raise

    def generator(self, device: Device = None) -> torch.Generator:
        """Return a device's default generator. Initialises the device.

        Raises:
            ValueError: ``device`` is of another type.
            torch.AcceleratorError: There is no such device.
        """
        self._lazy.init()
        return self._rng.default_generator(self._devices.existing_index(device))

    def _seed(self, index: int, seed: int) -> None:
        self._rng.default_generator(index).manual_seed(seed)

    def _seed_all(self, seed: int) -> None:
        for index in range(self._runtime.device_count()):
            self._seed(index, seed)

    def _set_state(self, index: int, state: torch.Tensor) -> None:
        self._rng.default_generator(index).set_state(state)


class NoRandom:
    """The same functions for a device without random operators.

    ``torch.manual_seed`` seeds every device there is, so seeding must work, and has nothing to do.
    Asking for a state that does not exist is an error.

    Args:
        plugin: Who has no random numbers, as text for the message.
    """

    def __init__(self, plugin: object) -> None:
        self._plugin = plugin

    def manual_seed(self, seed: int) -> None:
        """Check the seed, and do nothing else: the device has no random numbers."""
        _checked_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Check the seed, and do nothing else: the device has no random numbers."""
        _checked_seed(seed)

    def seed(self) -> None:
        """Do nothing: the device has no random numbers."""

    def seed_all(self) -> None:
        """Do nothing: the device has no random numbers."""

    def initial_seed(self) -> int:
        """Raise NotImplementedError: the device has no random numbers."""
        raise self._error("seed")

    def get_rng_state(self, device: Device = None) -> torch.Tensor:
        """Raise NotImplementedError: the device has no random numbers."""
        raise self._error("random state")

    def get_rng_state_all(self) -> list[torch.Tensor]:
        """Raise NotImplementedError: the device has no random numbers."""
        raise self._error("random state")

    def set_rng_state(self, new_state: torch.Tensor, device: Device = None) -> None:
        """Raise NotImplementedError: the device has no random numbers."""
        raise self._error("random state")

    def set_rng_state_all(self, new_states: Iterable[torch.Tensor]) -> None:
        """Raise NotImplementedError: the device has no random numbers."""
        raise self._error("random state")

    def generator(self, device: Device = None) -> torch.Generator:
        """Raise NotImplementedError: the device has no random numbers."""
        raise self._error("generator")

    def _error(self, what: str) -> NotImplementedError:
        return NotImplementedError(
            f"there is no {what}: device plugin {self._plugin} does not implement devhost_rng, "
            "so the device has no random numbers"
        )


def _checked_seed(seed: int) -> int:
    seed = int(seed)
    torch.Generator().manual_seed(seed)  # PyTorch's own opinion on its range, before any is set
    return seed


def _check_state(state: object) -> None:
    if not isinstance(state, torch.Tensor):
        raise TypeError(f"RNG state must be a torch.ByteTensor, but got {type(state).__name__}")
    if state.dtype != torch.uint8 or state.device.type != "cpu":
        raise TypeError(
            f"RNG state must be a torch.ByteTensor on the CPU, but got {state.dtype} on "
            f"{state.device}"
        )
