"""The path of one `import torch`: discover, select, import, check, probe, activate.

This is the only code that touches PyTorch's slot for an out-of-tree device. The rename cannot be
undone, so everything that can fail comes before it, the plugin's native code included.

Whatever a plugin does wrong ends its path and is logged, never `import torch`. The exceptions are
KeyboardInterrupt, which belongs to the user, and ``DEVHOST_STRICT=1``, which raises instead.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from devhost import checks, torch_compat
from devhost.blocking import block
from devhost.discovery import Installed, discover
from devhost.errors import (
    ConfigurationError,
    DevhostError,
    InvalidDeviceNameError,
    PluginError,
    exception_text,
    one_line,
)
from devhost.guards import explained, log, refuse, require_free_slot, require_untouched_slot
from devhost.journal import Journal, PluginRecord, State, keep, why_missing
from devhost.kernels import KernelRegistry
from devhost.manager import Hooks
from devhost.process_state import Snapshot
from devhost.selection import Selection, select
from devhost.types import DeviceInfo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from devhost.blocking import Blocked
    from devhost.discovery import InstalledPlugin
    from devhost.types import AmpPolicy, DeviceRng, DeviceRuntime, ProbeResult

STRICT_VARIABLE = "DEVHOST_STRICT"
STRICT_VALUES = ("", "0", "1")

_lock = threading.RLock()
_running = False
_active: _Attempt | None = None  # keeps what a device needs alive: hooks, what it supplied


def load() -> None:
    """Activate a device plugin, as `import torch` does by itself.

    For programs that run with ``TORCH_DEVICE_BACKEND_AUTOLOAD=0``. Imports torch. If a device is
    active already, nothing happens; if an earlier attempt failed before PyTorch's slot was
    touched, it is repeated. Whatever is wrong with a plugin is logged, and kept in
    ``devhost.status()``.

    Raises:
        DevhostError: Only with ``DEVHOST_STRICT=1``: what would have been logged.
    """
    # Imported before the lock is taken: another thread may be inside `import torch`, which waits
    # for the lock while this one would wait for the import.
    import torch  # noqa: F401

    run()


def run(
    installed: Installed | None = None,
    start: float | None = None,
    only: InstalledPlugin | None = None,
) -> None:
    """Take the path, once per process. See load(); torch must have been imported, or nearly.

    Args:
        installed: What is installed, if the caller has looked already.
        start: When the caller began, as ``time.perf_counter()`` tells it; None for now.
        only: A plugin to take along the path by itself, whatever else is installed and configured.
            What goes wrong is raised then.
    """
    global _running, _active
    with _lock:
        # A plugin that imports torch or calls load() while it is being activated comes back here
        # in the same thread: its activation is on its way, there is nothing to do.
        if _running or _active is not None:
            return
        _running = True
        attempt = _Attempt(strict=only is not None or _is_strict())
        start = time.perf_counter() if start is None else start
        try:
            if only is None:
                attempt.run(installed)
            else:
                attempt.run_only(only)
        finally:
            _running = False
            if attempt.journal.device is not None:
                _active = attempt
            attempt.journal.seconds = time.perf_counter() - start
            keep(attempt.journal)
            device = attempt.journal.device
            if any(record.plugin.name != device for record in attempt.journal.plugins):
                torch_compat.explain_missing_devices(why_missing)


class Supplied:
    """What the active device's plugin supplied.

    Attributes:
        kernels: What it registered.
        runtime: What ``devhost_runtime`` returned.
        rng: What ``devhost_rng`` returned; None if there is no such hook.
        amp: What ``devhost_amp`` returned; None if there is no such hook.
    """

    def __init__(
        self,
        kernels: KernelRegistry,
        runtime: DeviceRuntime,
        rng: DeviceRng | None,
        amp: AmpPolicy | None,
    ) -> None:
        self.kernels = kernels
        self.runtime = runtime
        self.rng = rng
        self.amp = amp


def supplied() -> Supplied | None:
    """Return what the active device's plugin supplied; None without an available device."""
    return _active.supplied if _active is not None else None


class _Prepared:
    """A plugin that is imported, checked and probed."""

    def __init__(
        self, record: PluginRecord, hook_module: object, info: DeviceInfo, probe: ProbeResult
    ) -> None:
        self.record = record
        self.hook_module = hook_module
        self.info = info
        self.probe = probe


class _Attempt:
    """One way along the path.

    Args:
        strict: Raise what would be logged.
    """

    def __init__(self, *, strict: bool) -> None:
        self.journal = Journal()
        self._strict = strict
        self._manager: Hooks | None = None
        self._active: PluginRecord | None = None
        self.supplied: Supplied | None = None  # by the active device's plugin

    def run(self, installed: Installed | None) -> None:
        """Activate the first available plugin of those that are selected.

        Raises:
            DevhostError: What went wrong, if strict.
        """
        try:
            self.journal.open(installed if installed is not None else discover())
            selection = self._select()
        except DevhostError as error:
            self.journal.choice = str(error)
            for record in self.journal.undecided():
                record.end(State.NOT_SELECTED, str(error))
            self._report(error)
            return
        self._activate_first(self._mark(selection))

    def run_only(self, plugin: InstalledPlugin) -> None:
        """Activate one plugin without asking for a choice, or for extensions.

        Raises:
            DevhostError: What went wrong, if strict.
        """
        self.journal.open(Installed((plugin,), (), seconds=0.0))
        self._activate_first(self._mark(Selection((plugin,), "it is looked at by itself")))

    # Selecting

    def _select(self) -> Selection:
        installed = [record.plugin for record in self.journal.plugins]
        blocked = self._block(installed)
        candidates = [record.plugin for record in self.journal.undecided()]
        ask_site = None
        if candidates and self.journal.extensions:
            self._register_extensions()

            def ask_site() -> object:
                return self._hooks().select(candidates)

        return select(installed, os.environ, ask_site, blocked)

    def _block(self, installed: list[InstalledPlugin]) -> Blocked:
        extensions = [record.plugin for record in self.journal.extensions]
        blocked = block(installed, extensions, os.environ)
        for record in (*self.journal.plugins, *self.journal.extensions):
            if record.plugin in blocked.plugins:
                record.end(State.DISABLED, blocked.reason)
        if blocked.problem:
            self._report(ConfigurationError(blocked.problem))
        return blocked

    def _register_extensions(self) -> None:
        for record in self.journal.extensions:
            if record.state is State.DISABLED:
                continue
            try:
                extension = self._import(record)
                with self._step(record, "check", "checking it", State.CHECKED):
                    manager = self._hooks().manager
                    refuse(record.plugin, checks.hook_problems(extension, manager, device=False))
                    self._hooks().register_extension(
                        extension, record.plugin, functools.partial(self._drop_extension, record)
                    )
                record.state = State.ACTIVATED
            except PluginError as error:
                self._drop_extension(record, error)

    def _drop_extension(self, record: PluginRecord, error: PluginError) -> None:
        record.fail(str(error), error)
        self._report(error)

    def _mark(self, selection: Selection) -> list[PluginRecord]:
        """Record the outcome for every plugin; return the selected ones in order."""
        self.journal.choice = selection.reason
        rest = State.DISABLED if selection.disabled else State.NOT_SELECTED
        by_plugin = {record.plugin: record for record in self.journal.undecided()}
        for plugin, record in by_plugin.items():
            if plugin in selection.plugins:
                record.state = State.SELECTED
            else:
                record.end(rest, selection.reason)
        if by_plugin and not selection.plugins and not selection.disabled:
            log(logging.WARNING, "no device is active: %s", one_line(selection.reason))
        return [by_plugin[plugin] for plugin in selection.plugins]

    # Activating

    def _activate_first(self, records: list[PluginRecord]) -> None:
        """Give the slot to the first plugin that is available, or else to an unavailable one."""
        unavailable: list[_Prepared] = []
        for record in records:
            if self.journal.device is not None:
                record.end(State.NOT_SELECTED, f"'{self.journal.device}' comes first")
                continue
            with self._one_device(record), self._process_state(record):
                prepared = self._prepare(record)
                if prepared.probe.available:
                    record.state = State.AVAILABLE
                    self._activate(prepared)
                else:
                    record.end(State.UNAVAILABLE, one_line(prepared.probe.reason))
                    unavailable.append(prepared)
        if self.journal.device is None and unavailable:
            prepared = unavailable[0]
            with self._one_device(prepared.record):
                self._hooks().register_device(prepared.hook_module, prepared.record.plugin)
                self._register_unavailable(prepared)
        if self._active is not None:
            self._announce(self._active)

    def _prepare(self, record: PluginRecord) -> _Prepared:
        """Import, check and probe a plugin. Nothing of PyTorch is changed."""
        plugin = record.plugin
        require_free_slot(plugin)
        hook_module = self._import(record)
        with self._step(record, "check", "checking it", State.CHECKED):
            info = self._check(plugin, hook_module)
        with self._step(record, "probe", "calling devhost_probe()"):
            probe = self._hooks().probe()
            refuse(plugin, checks.probe_problems(probe))
        return _Prepared(record, hook_module, info, probe)

    def _import(self, record: PluginRecord) -> object:
        plugin = record.plugin
        with self._step(record, "import", f"importing {plugin.value}", State.IMPORTED):
            hook_module: object = plugin.load()
        if is_being_imported(plugin.module):
            raise PluginError(
                plugin.describe(),
                f"is still being imported: {plugin.module} imports torch, and torch loads devhost",
                f"Import torch inside the hooks of {plugin.module}, not at its top; or import "
                f"torch before {plugin.module}; or call devhost.load() once it is imported",
                plugin.kind,
            )
        return hook_module

    def _check(self, plugin: InstalledPlugin, hook_module: object) -> DeviceInfo:
        """Register a plugin's hooks and return who it is, or raise all its problems at once."""
        hooks = self._hooks()
        problems = list(checks.hook_problems(hook_module, hooks.manager, device=True))
        if problems:
            # With a problem elsewhere, who it says it is can still be looked at.
            identify = getattr(hook_module, "devhost_device", None)
        else:
            hooks.register_device(hook_module, plugin)
            identify = hooks.device
        info: Any = None
        if callable(identify):
            try:
                info = identify()
                problems += checks.info_problems(info, plugin.name)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                problems.append(f"devhost_device() raised {exception_text(error)}")
        try:
            checks.validate_name(plugin.name)
        except InvalidDeviceNameError as error:
            problems.append(str(error))
        if isinstance(info, DeviceInfo):
            problems += torch_compat.version_problems(info, *torch_compat.torch_version())
        refuse(plugin, problems)
        checked: DeviceInfo = info
        return checked

    def _activate(self, prepared: _Prepared) -> None:
        """Load a plugin's kernels, bring its runtime up to being usable, and take the slot."""
        from devhost.device_module.build import build  # imports torch at its top

        record, info = prepared.record, prepared.info
        plugin = record.plugin
        hooks = self._hooks()
        kernels = KernelRegistry(info.name)
        try:
            with self._step(record, "kernels", "calling devhost_kernels()"):
                hooks.kernels(kernels)
                if kernels.native_modules:
                    kernels.allow_moving_parameters()
            with self._step(record, "runtime", "calling devhost_runtime()"):
                runtime = hooks.runtime()
            with self._step(record, "rng", "calling devhost_rng()"):
                rng = hooks.rng()
            with self._step(record, "amp", "calling devhost_amp()"):
                amp = hooks.amp()
            with explained(plugin, "checking what its hooks returned", PluginError):
                refuse(
                    plugin,
                    [
                        *checks.runtime_problems(runtime),
                        *checks.rng_problems(rng),
                        *checks.amp_problems(amp),
                    ],
                )
            with self._step(record, "module", f"building torch.{info.name}"):
                module = build(info.name, plugin, runtime, rng, amp, kernels.fallback_control)
            require_free_slot(plugin)
        except BaseException:
            kernels.discard()
            raise
        self.supplied = Supplied(kernels, runtime, rng, amp)
        self._take_slot(record, info.name, module)
        if amp is not None:
            torch_compat.set_autocast_dtype(info.name, amp.default_dtype)
        record.state = State.ACTIVATED

    def _register_unavailable(self, prepared: _Prepared) -> None:
        """Give the slot to a device without hardware, so that its first use can say so."""
        from devhost.device_module.unavailable import build_unavailable  # imports torch at its top

        record = prepared.record
        require_free_slot(record.plugin)
        module = build_unavailable(prepared.info.name, record.plugin, record.reason)
        self._take_slot(record, prepared.info.name, module)

    def _take_slot(self, record: PluginRecord, name: str, module: ModuleType) -> None:
        if torch_compat.slot_name() == name:
            log(
                logging.WARNING,
                "device plugin %s has renamed PyTorch's slot itself, which would break "
                "`import torch` beside another plugin; devhost does it: remove the call of "
                "rename_privateuse1_backend()",
                record.plugin.describe(),
            )
        with self._step(record, "register", "registering it with PyTorch, which used up the slot"):
            torch_compat.take_slot(name, module)
            self.journal.device = name
            self._active = record

    def _announce(self, record: PluginRecord) -> None:
        """Call devhost_activated. The device is active whatever comes of it.

        What an extension raises is reported by its guard; what arrives here is the device's own.
        """
        if not self._hooks().has_observers():
            return
        from devhost.records import snapshot  # not loaded for nothing

        try:
            self._hooks().activated(snapshot(self.journal))
        except (KeyboardInterrupt, PluginError):
            raise
        except BaseException as error:
            self._report(
                DevhostError(
                    f"devhost_activated() failed after {record.plugin.describe()} had become "
                    f"active, which it stays: {exception_text(error)}"
                ),
                cause=error,
            )

    # What all of it shares

    def _hooks(self) -> Hooks:
        if self._manager is None:
            self._manager = Hooks()
        return self._manager

    @contextlib.contextmanager
    def _step(
        self, record: PluginRecord, name: str, doing: str, state: State | None = None
    ) -> Iterator[None]:
        """Record a step; whatever it raises becomes a PluginError that says what it was doing.

        So does taking the slot, which is not for plugins to do.
        """
        plugin = record.plugin
        # If the process crashes or hangs now, this is the last that is heard of it.
        log(logging.DEBUG, "'%s': %s", plugin.name, doing)
        was_free = torch_compat.slot_is_free_for(plugin.name)
        with explained(plugin, doing, PluginError), record.step(name, state):
            yield
        if was_free and self.journal.device is None:
            require_untouched_slot(plugin, doing)

    @contextlib.contextmanager
    def _one_device(self, record: PluginRecord) -> Iterator[None]:
        """Keep a device's failure to itself, and its hooks registered only if it gets the slot."""
        try:
            # Whatever no step has caught is kept to the device as well.
            with explained(record.plugin, "making it ready", DevhostError):
                yield
        except DevhostError as error:
            record.fail(str(error), error)
            self._report(error)
        finally:
            if self.journal.device is None and self._manager is not None:
                self._manager.unregister_device()

    @contextlib.contextmanager
    def _process_state(self, record: PluginRecord) -> Iterator[None]:
        """Put back what a plugin changes in the process while it is loaded, and say so."""
        before = Snapshot()
        failed = True
        try:
            yield
            failed = False
        finally:
            changes = before.put_back(failed=failed)
            if changes:
                log(
                    logging.WARNING,
                    "device plugin %s changed, while it was loaded, %s. It must leave the "
                    "process as it is: tell its authors, or update it",
                    record.plugin.describe(),
                    one_line("; ".join(changes)),
                )

    def _report(self, error: DevhostError, cause: BaseException | None = None) -> None:
        if self._strict:
            raise error from (cause or error.__cause__)
        log(logging.ERROR, "%s", one_line(str(error)))


def is_being_imported(module_name: str) -> bool:
    """Return whether a module's code is still running."""
    # The import system's own mark on it.
    spec = getattr(sys.modules.get(module_name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def _is_strict() -> bool:
    value = os.environ.get(STRICT_VARIABLE, "").strip()
    if value not in STRICT_VALUES:
        log(logging.ERROR, "%s=%s is ignored: it must be 0 or 1", STRICT_VARIABLE, value)
    return value == "1"
