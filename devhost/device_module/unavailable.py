"""The module ``torch.<name>`` of a device whose plugin is installed but whose hardware is missing.

Its name parses, it has no devices, seeding does nothing, because ``torch.manual_seed`` seeds every
device there is, and everything else says why the device is not there. Nothing of the plugin's own
is needed for that.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from devhost import torch_compat
from devhost.device_module.build import build
from devhost.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from types import ModuleType


def build_unavailable(name: str, plugin: object, reason: str) -> ModuleType:
    """Return the module of a device that is not there, and let PyTorch know that it is not.

    ``is_available()`` is False and ``device_count()`` 0; any use raises DeviceUnavailableError.

    Args:
        name: Device name.
        plugin: Who would supply it, as text for messages.
        reason: Why it is not available, from the plugin's probe.
    """
    module = build(name, plugin, _UnavailableRuntime(name, plugin, reason))
    torch_compat.register_absent_device()
    return module


class _UnavailableRuntime:
    """A DeviceRuntime with no devices: everything but counting them says why there are none."""

    def __init__(self, name: str, plugin: object, reason: str) -> None:
        self._message = (
            f"device '{name}' cannot be used: its plugin {plugin} is installed, but the device is "
            f"not available: {reason}"
        )
        # What the host derives without asking the runtime would say something else, and wrong.
        self.module_members = {
            **dict.fromkeys(
                (
                    "initial_seed",
                    "get_rng_state",
                    "get_rng_state_all",
                    "set_rng_state",
                    "set_rng_state_all",
                    "_get_generator",
                    "get_amp_supported_dtype",  # torch.autocast asks for it
                ),
                self._refuse,
            ),
            "is_bf16_supported": self._supports_nothing,
            "Stream": self._refusing(torch.Stream),
            "Event": self._refusing(torch.Event),
            "_utils": SimpleNamespace(_get_device_index=self._refuse_to_load),
        }

    def device_count(self) -> int:
        return 0

    def is_in_bad_fork(self) -> bool:
        return False  # what was never started cannot be broken by a fork

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise DeviceUnavailableError(self._message)

    init = current_device = set_device = exchange_device = synchronize = _refuse
    get_device_properties = set_memory_fraction = _refuse

    def _supports_nothing(self, including_emulation: bool = True) -> bool:
        return False

    def _refusing(self, cls: type) -> type:
        # A class all the same, for isinstance() and annotations.
        return type(cls.__name__, (cls,), {"__new__": lambda _, *__, **___: self._refuse()})

    def _refuse_to_load(self, *_: Any) -> NoReturn:
        raise DeviceUnavailableError(
            f"{self._message}. torch.load(..., map_location='cpu') loads what was saved on it"
        )
