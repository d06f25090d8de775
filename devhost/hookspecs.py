"""The hooks of devhost: what a device plugin implements, and what extensions may add.

Hooks are factories. Each is called once while the device is activated, never on the path of an
operator; what they return is bound straight into ``torch.<name>``. An implementation is a function
with a hook's name, marked with ``devhost.hookimpl``; it may leave out arguments that it does not
need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pluggy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devhost.kernels import KernelRegistry
    from devhost.records import Status
    from devhost.types import (
        AmpPolicy,
        Candidate,
        DeviceInfo,
        DeviceRng,
        DeviceRuntime,
        ProbeResult,
    )

PROJECT_NAME: Final = "devhost"
SPEC_VERSION: Final = 1
"""Version of the hooks below. It changes when a plugin written for the previous one may break."""

hookspec = pluggy.HookspecMarker(PROJECT_NAME)
hookimpl = pluggy.HookimplMarker(PROJECT_NAME)

REQUIRED_HOOKS: Final = ("devhost_device", "devhost_probe", "devhost_runtime", "devhost_kernels")
EXTENSION_HOOKS: Final = ("devhost_select",)
"""Hooks that only extensions may implement: a device does not choose between devices."""


@hookspec(firstresult=True)
def devhost_device() -> DeviceInfo:  # type: ignore[empty-body]
    """Say who the device is. Required.

    Called first, in every process that imports torch, and by ``devhost list``. Must not import
    torch.

    Returns:
        The device's name, description and the versions it supports.

    Example::

        from devhost import DeviceInfo, hookimpl

        @hookimpl
        def devhost_device() -> DeviceInfo:
            return DeviceInfo(
                name="example",
                description="An example device",
                simulated=True,
            )
    """


@hookspec(firstresult=True)
def devhost_probe() -> ProbeResult:  # type: ignore[empty-body]
    """Say whether the device's hardware is there, and if not, why. Required.

    Called after ``devhost_device``, before anything native is loaded, and by ``devhost list``.
    Must not import torch and must not initialise the device. If the hardware is not there,
    ``torch.device(name)`` still parses, ``torch.<name>.is_available()`` is False, the hooks below
    are not called, and the first use of the device raises DeviceUnavailableError with the reason.

    Returns:
        Availability, the reason if there is none, and one name per device.

    Example::

        import os
        from devhost import ProbeResult, hookimpl

        @hookimpl
        def devhost_probe() -> ProbeResult:
            if not os.path.exists("/dev/null"):
                return ProbeResult(available=False, reason="/dev/null does not exist")
            return ProbeResult(available=True, devices=("Example 9000",))
    """


@hookspec
def devhost_kernels(registry: KernelRegistry) -> None:
    """Load native kernels or define them in Python. Required.

    Called before the device gets its name: name it ``privateuseone`` here, or use the dispatch key
    ``PrivateUse1``. If anything fails, PyTorch's slot is still free.

    Args:
        registry: Loads native extension modules and registers Python kernels.

    Example::

        from devhost import KernelRegistry, hookimpl

        @hookimpl
        def devhost_kernels(registry: KernelRegistry) -> None:
            registry.define("example::twice(Tensor x) -> Tensor")
            registry.impl("example::twice", lambda x: x + x)
    """


@hookspec(firstresult=True)
def devhost_runtime() -> DeviceRuntime:  # type: ignore[empty-body]
    """Return the device's runtime. Required.

    Called after ``devhost_kernels``. The host derives ``torch.<name>`` from it.

    Returns:
        An object, or a module, with the members of DeviceRuntime.

    Example::

        from types import SimpleNamespace
        from devhost import DeviceRuntime, hookimpl

        class ExampleRuntime:
            def __init__(self) -> None:
                self._current = 0

            def device_count(self) -> int:
                return 2

            def current_device(self) -> int:
                return self._current

            def set_device(self, index: int) -> None:
                self._current = index

            def exchange_device(self, index: int) -> int:
                previous, self._current = self._current, index
                return previous

            def synchronize(self, index: int) -> None:
                pass  # this device has no queues

            def init(self) -> None:
                pass  # and nothing to start

            def is_in_bad_fork(self) -> bool:
                return False

            def get_device_properties(self, index: int) -> SimpleNamespace:
                return SimpleNamespace(name="Example 9000", total_memory=2**30)

        @hookimpl
        def devhost_runtime() -> DeviceRuntime:
            return ExampleRuntime()
    """


@hookspec(firstresult=True)
def devhost_rng() -> DeviceRng:  # type: ignore[empty-body]
    """Return the device's random number generators, if it has random operators.

    Called after ``devhost_runtime``. The host derives ``manual_seed``, ``get_rng_state`` and the
    other random functions of ``torch.<name>``. The plugin's kernels draw from these generators, and
    refuse one of another device. Without this hook seeding the device does nothing, and asking for
    its random state raises NotImplementedError.

    Returns:
        An object that gives the default generator of each device.

    Example::

        import torch
        from devhost import DeviceRng, hookimpl

        class ExampleRng:
            def __init__(self) -> None:
                self._generators = (torch.Generator(), torch.Generator())

            def default_generator(self, index: int) -> torch.Generator:
                return self._generators[index]

        @hookimpl
        def devhost_rng() -> DeviceRng:
            return ExampleRng()
    """


@hookspec(firstresult=True)
def devhost_amp() -> AmpPolicy:  # type: ignore[empty-body]
    """Return what autocast does on the device, if it supports autocast.

    Called after ``devhost_runtime``. The host registers casts for the operators that the policy
    lists, and lets all others run unchanged; a plugin that registers its casts in C++ lists none.
    An operator that does not exist is an error. Without this hook ``torch.autocast(name)`` raises
    AssertionError.

    Returns:
        The supported data types, the default one, and the operators that run in lower precision,
        in float32, and in the widest type of their inputs.

    Example::

        import torch
        from devhost import AmpPolicy, hookimpl

        @hookimpl
        def devhost_amp() -> AmpPolicy:
            return AmpPolicy(
                supported_dtypes=(torch.bfloat16, torch.float16),
                default_dtype=torch.bfloat16,
                lower_precision=("aten::mm", "aten::linear"),
                float32=("aten::exp", "aten::softmax.int"),
                promote=("aten::atan2",),
            )
    """


@hookspec(firstresult=True)
def devhost_select(candidates: Sequence[Candidate]) -> str | None:
    """Choose one of the installed device plugins on behalf of a site. For extensions only.

    Called when ``DEVHOST_DEVICE`` is not set, `devhost use` has saved no choice, and at least one
    device plugin is installed that ``DEVHOST_DISABLE`` does not keep out. No device plugin has
    been imported at that time. The first extension that answers decides.

    Args:
        candidates: The installed device plugins that are not kept out, sorted by name.

    Returns:
        The name of a device or of a distribution among the candidates, ``"none"`` to activate
        none of them, or None to leave the choice to the next rule.

    Example::

        from collections.abc import Sequence
        from devhost import Candidate, hookimpl

        @hookimpl
        def devhost_select(candidates: Sequence[Candidate]) -> str | None:
            ours = [c.name for c in candidates if c.distribution.startswith("ourlab-")]
            return ours[0] if ours else None
    """


@hookspec
def devhost_activated(status: Status) -> None:
    """Observe the end of activation. For extensions; a device plugin may implement it too.

    Called once after a device has been registered with PyTorch, available or not. An exception is
    logged and changes nothing: the device stays active.

    Args:
        status: The same as ``devhost.status()`` returns.

    Example::

        from devhost import Status, hookimpl

        @hookimpl
        def devhost_activated(status: Status) -> None:
            print("device", status.device, "is ready")
    """
