"""devhost: the host for PyTorch device plugins.

Install a device plugin, ``import torch``, and its device is there: nothing of this package has to
be imported for that. What is here is for plugin authors and for looking at what happened.

Importing ``devhost`` imports neither torch, nor package metadata, nor pluggy: each public name is
imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devhost.activation import load as load
    from devhost.checks import validate_name as validate_name
    from devhost.errors import CompileBackendError as CompileBackendError
    from devhost.errors import ConfigurationError as ConfigurationError
    from devhost.errors import DeferredCallError as DeferredCallError
    from devhost.errors import DevhostError as DevhostError
    from devhost.errors import DeviceUnavailableError as DeviceUnavailableError
    from devhost.errors import DiscoveryError as DiscoveryError
    from devhost.errors import InvalidDeviceNameError as InvalidDeviceNameError
    from devhost.errors import KernelRegistrationError as KernelRegistrationError
    from devhost.errors import PluginCheckError as PluginCheckError
    from devhost.errors import PluginError as PluginError
    from devhost.errors import SelectionError as SelectionError
    from devhost.errors import SlotTakenError as SlotTakenError
    from devhost.hookspecs import hookimpl as hookimpl
    from devhost.journal import State as State
    from devhost.kernels import KernelRegistry as KernelRegistry
    from devhost.records import PluginStatus as PluginStatus
    from devhost.records import Status as Status
    from devhost.records import Step as Step
    from devhost.records import status as status
    from devhost.types import AmpPolicy as AmpPolicy
    from devhost.types import Candidate as Candidate
    from devhost.types import DeviceInfo as DeviceInfo
    from devhost.types import DeviceProperties as DeviceProperties
    from devhost.types import DeviceRng as DeviceRng
    from devhost.types import DeviceRuntime as DeviceRuntime
    from devhost.types import FallbackControl as FallbackControl
    from devhost.types import ProbeResult as ProbeResult

__version__ = "0.1.0"

_PUBLIC = {
    "devhost.activation": ("load",),
    "devhost.checks": ("validate_name",),
    "devhost.errors": (
        "CompileBackendError",
        "ConfigurationError",
        "DeferredCallError",
        "DeviceUnavailableError",
        "DevhostError",
        "DiscoveryError",
        "InvalidDeviceNameError",
        "KernelRegistrationError",
        "PluginCheckError",
        "PluginError",
        "SelectionError",
        "SlotTakenError",
    ),
    "devhost.hookspecs": ("hookimpl",),
    "devhost.kernels": ("KernelRegistry",),
    "devhost.journal": ("State",),
    "devhost.records": ("PluginStatus", "Status", "Step", "status"),
    "devhost.types": (
        "AmpPolicy",
        "Candidate",
        "DeviceInfo",
        "DeviceProperties",
        "DeviceRng",
        "DeviceRuntime",
        "FallbackControl",
        "ProbeResult",
    ),
}
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = ["__version__", *_MODULE_OF]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'devhost' has no attribute '{name}'")
    value = getattr(import_module(module), name)
    globals()[name] = value  # found directly from now on
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
