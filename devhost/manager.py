"""The process's pluggy PluginManager: the active device plugin and the extensions.

Imported only once there is something to register, because pluggy costs 2 ms of every
`import torch`. Only pluggy's public API is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pluggy

from devhost import hookspecs
from devhost.hookspecs import PROJECT_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from devhost.discovery import InstalledPlugin
    from devhost.errors import PluginError
    from devhost.kernels import KernelRegistry
    from devhost.records import Status
    from devhost.types import Candidate


class Hooks:
    """The hooks of everything that is registered, with the types their specs promise.

    What comes back from a plugin is unchecked, hence Any or object; ``checks`` looks at it.
    """

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(PROJECT_NAME)
        self.manager.add_hookspecs(hookspecs)
        self._device_plugin: object | None = None
        self._extensions: list[object] = []

    def register_extension(
        self, extension: object, who: InstalledPlugin, on_failure: Callable[[PluginError], None]
    ) -> None:
        """Add an extension's hook implementations, so that what fails in them stays in them.

        Args:
            extension: The object that carries them.
            who: Whose they are.
            on_failure: Called if one of them fails; the extension is passed over after that.

        Raises:
            pluggy.PluginValidationError: An implementation does not match its spec.
        """
        from devhost.extensions import Guarded  # not needed where there is no extension

        plugin = Guarded(extension, who, self.manager, on_failure).plugin
        self.manager.register(plugin, f"extension {who.describe()}")
        self._extensions.append(plugin)

    def register_device(self, plugin: object, who: InstalledPlugin) -> None:
        """Add the hook implementations of the device plugin at work.

        Raises:
            ValueError: The same object is registered already.
            pluggy.PluginValidationError: An implementation does not match its spec.
        """
        self.manager.register(plugin, f"device plugin {who.name}")
        self._device_plugin = plugin

    def unregister_device(self) -> None:
        """Take the device plugin's hook implementations away; does nothing if there are none."""
        if self._device_plugin is not None:
            self.manager.unregister(self._device_plugin)
            self._device_plugin = None

    def device(self) -> Any:
        """Call ``devhost_device``."""
        return self.manager.hook.devhost_device()

    def probe(self) -> Any:
        """Call ``devhost_probe``."""
        return self.manager.hook.devhost_probe()

    def kernels(self, registry: KernelRegistry) -> None:
        """Call ``devhost_kernels``."""
        self.manager.hook.devhost_kernels(registry=registry)

    def runtime(self) -> Any:
        """Call ``devhost_runtime``."""
        return self.manager.hook.devhost_runtime()

    def rng(self) -> Any:
        """Call ``devhost_rng``; None if there is no such hook."""
        return self.manager.hook.devhost_rng()

    def amp(self) -> Any:
        """Call ``devhost_amp``; None if there is no such hook."""
        return self.manager.hook.devhost_amp()

    def select(self, candidates: Sequence[Candidate]) -> object:
        """Call ``devhost_select``; None if no extension answers."""
        return cast("object", self.manager.hook.devhost_select(candidates=candidates))

    def has_observers(self) -> bool:
        """Return whether anybody implements ``devhost_activated``."""
        return bool(self.manager.hook.devhost_activated.get_hookimpls())

    def activated(self, status: Status) -> None:
        """Call ``devhost_activated``: the extensions' first, which raise nothing."""
        device = [] if self._device_plugin is None else [self._device_plugin]
        for others in (device, self._extensions):
            self.manager.subset_hook_caller("devhost_activated", others)(status=status)
