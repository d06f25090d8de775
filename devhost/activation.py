"""The path of one `import torch`: discover, select, import, check, probe, activate.

This is the only code that touches PyTorch's slot for an out-of-tree device. The rename cannot be
undone, so everything that can fail comes before it, the plugin's native code included.

Whatever a plugin does wrong ends its path and is logged, never `import torch`. The exceptions are
KeyboardInterrupt, which belongs to the user, and ``DEVHOST_STRICT=1``, which raises instead.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from devhost import checks, torch_compat
from devhost.discovery import Installed, discover
from devhost.errors import (
    DevhostError,
    InvalidDeviceNameError,
    PluginCheckError,
    PluginError,
    SelectionError,
    SlotTakenError,
    exception_text,
    one_line,
)
from devhost.journal import Journal, PluginRecord, State, keep
from devhost.kernels import KernelRegistry
from devhost.manager import Hooks
from devhost.selection import Selection, select
from devhost.types import DeviceInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from devhost.discovery import InstalledPlugin
    from devhost.types import ProbeResult

STRICT_VARIABLE = "DEVHOST_STRICT"

logger = logging.getLogger("devhost")

_lock = threading.RLock()
_running = False
_active: _Attempt | None = None  # keeps what a device needs alive: hooks, Python kernels


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


def run(installed: Installed | None = None, start: float | None = None) -> None:
    """Take the path, once per process. See load(); torch must have been imported, or nearly.

    Args:
        installed: What is installed, if the caller has looked already.
        start: When the caller began, as ``time.perf_counter()`` tells it; None for now.
    """
    global _running, _active
    with _lock:
        # A plugin that imports torch or calls load() while it is being activated comes back here
        # in the same thread: its activation is on its way, there is nothing to do.
        if _running or _active is not None:
            return
        _running = True
        attempt = _Attempt(strict=_is_strict())
        start = time.perf_counter() if start is None else start
        try:
            attempt.run(installed)
        finally:
            _running = False
            if attempt.journal.device is not None:
                _active = attempt
            attempt.journal.seconds = time.perf_counter() - start
            keep(attempt.journal)


class _Prepared(NamedTuple):
    """A plugin that is imported, checked and probed."""

    record: PluginRecord
    hook_module: object
    info: DeviceInfo
    probe: ProbeResult


class _Attempt:
    """One way along the path.

    Args:
        strict: Raise what would be logged.
    """

    def __init__(self, *, strict: bool) -> None:
        self.journal = Journal()
        self._strict = strict
        self._manager: Hooks | None = None
        self._kernels: KernelRegistry | None = None  # of the active device

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
            for record in self.journal.plugins:
                record.end(State.NOT_SELECTED, str(error))
            self._report(error)
            return
        self._activate_first(self._mark(selection))

    # Selecting

    def _select(self) -> Selection:
        candidates = [record.plugin for record in self.journal.plugins]
        ask_site = None
        if candidates and self.journal.extensions:
            self._register_extensions()

            def ask_site() -> object:
                try:
                    return self._hooks().select(candidates)
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    raise SelectionError(
                        f"an extension's devhost_select failed: {exception_text(error)}"
                    ) from error

        return select(candidates, os.environ, ask_site)

    def _register_extensions(self) -> None:
        for record in self.journal.extensions:
            try:
                extension = self._import(record)
                with self._step(record, "check", "checking it", State.CHECKED):
                    manager = self._hooks().manager
                    _refuse(record.plugin, checks.hook_problems(extension, manager, device=False))
                    self._hooks().register_extension(extension, record.plugin)
                record.state = State.ACTIVATED
            except PluginError as error:
                record.fail(str(error), error)
                self._report(error)

    def _mark(self, selection: Selection) -> list[PluginRecord]:
        """Record the outcome for every plugin; return the selected ones in order."""
        self.journal.choice = selection.reason
        rest = State.DISABLED if selection.disabled else State.NOT_SELECTED
        by_plugin = {record.plugin: record for record in self.journal.plugins}
        for plugin, record in by_plugin.items():
            if plugin in selection.plugins:
                record.state = State.SELECTED
            else:
                record.end(rest, selection.reason)
        if by_plugin and not selection.plugins and not selection.disabled:
            logger.warning("devhost: no device is active: %s", one_line(selection.reason))
        return [by_plugin[plugin] for plugin in selection.plugins]

    # Activating

    def _activate_first(self, records: list[PluginRecord]) -> None:
        """Give the slot to the first plugin that is available, or else to an unavailable one."""
        unavailable: list[_Prepared] = []
        for record in records:
            if self.journal.device is not None:
                record.end(State.NOT_SELECTED, f"'{self.journal.device}' comes first")
                continue
            with self._one_device(record):
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

    def _prepare(self, record: PluginRecord) -> _Prepared:
        """Import, check and probe a plugin. Nothing of PyTorch is changed."""
        plugin = record.plugin
        _require_free_slot(plugin)
        hook_module = self._import(record)
        with self._step(record, "check", "checking it", State.CHECKED):
            info = self._check(plugin, hook_module)
        with self._step(record, "probe", "calling devhost_probe()"):
            probe = self._hooks().probe()
            _refuse(plugin, checks.probe_problems(probe))
        return _Prepared(record, hook_module, info, probe)

    def _import(self, record: PluginRecord) -> object:
        plugin = record.plugin
        with self._step(record, "import", f"importing {plugin.value}", State.IMPORTED):
            hook_module: object = plugin.load()
        if _is_being_imported(plugin.module):
            raise PluginError(
                plugin.describe(),
                f"is still being imported: {plugin.module} imports torch, and torch loads devhost",
                f"Import torch inside the hooks of {plugin.module}, not at its top; or import "
                f"torch before {plugin.module}; or call devhost.load() once it is imported",
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
        _refuse(plugin, problems)
        checked: DeviceInfo = info
        return checked

    def _activate(self, prepared: _Prepared) -> None:
        """Load a plugin's kernels, bring its runtime up to being usable, and take the slot."""
        from devhost.device_module.build import build  # imports torch at its top

        record, _, info, _ = prepared
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
            _refuse(
                plugin,
                [
                    *checks.runtime_problems(runtime),
                    *checks.rng_problems(rng),
                    *checks.amp_problems(amp),
                ],
            )
            with self._step(record, "module", f"building torch.{info.name}"):
                module = build(
                    info.name, plugin.describe(), runtime, rng, amp, kernels.fallback_control
                )
            _require_free_slot(plugin)
        except BaseException:
            kernels.discard()
            raise
        self._kernels = kernels
        self._take_slot(record, info.name, module)
        if amp is not None:
            torch_compat.set_autocast_dtype(info.name, amp.default_dtype)
        record.state = State.ACTIVATED
        self._announce(record)

    def _register_unavailable(self, prepared: _Prepared) -> None:
        """Give the slot to a device without hardware, so that its first use can say so."""
        from devhost.device_module.build import build_unavailable  # imports torch at its top

        record = prepared.record
        _require_free_slot(record.plugin)
        module = build_unavailable(prepared.info.name, record.plugin.describe(), record.reason)
        self._take_slot(record, prepared.info.name, module)
        self._announce(record)

    def _take_slot(self, record: PluginRecord, name: str, module: ModuleType) -> None:
        with self._step(record, "register", "registering it with PyTorch, which used up the slot"):
            torch_compat.take_slot(name, module)
            self.journal.device = name

    def _announce(self, record: PluginRecord) -> None:
        """Call devhost_activated. The device is active whatever comes of it."""
        if not self._hooks().has_observers():
            return
        from devhost.records import snapshot  # not loaded for nothing

        try:
            self._hooks().activated(snapshot(self.journal))
        except KeyboardInterrupt:
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
        """Record a step; whatever it raises becomes a PluginError that says what it was doing."""
        try:
            with record.step(name, state):
                yield
        except (KeyboardInterrupt, PluginError):
            raise
        except BaseException as error:  # plugins raise anything, SystemExit included
            raise PluginError(
                record.plugin.describe(),
                f"failed while {doing}: {exception_text(error)}",
                _remedy(record.plugin, error),
            ) from error

    @contextlib.contextmanager
    def _one_device(self, record: PluginRecord) -> Iterator[None]:
        """Keep a device's failure to itself, and its hooks registered only if it gets the slot."""
        try:
            yield
        except DevhostError as error:
            record.fail(str(error), error)
            self._report(error)
        finally:
            if self.journal.device is None and self._manager is not None:
                self._manager.unregister_device()

    def _report(self, error: DevhostError, cause: BaseException | None = None) -> None:
        if self._strict:
            raise error from (cause or error.__cause__)
        logger.error("devhost: %s", one_line(str(error)))


def _refuse(plugin: InstalledPlugin, problems: Iterable[str]) -> None:
    problems = list(problems)
    if problems:
        raise PluginCheckError(plugin.describe(), problems)


def _require_free_slot(plugin: InstalledPlugin) -> None:
    if torch_compat.slot_name() != torch_compat.UNUSED_SLOT:
        raise SlotTakenError(
            f"device plugin {plugin.describe()} stays inactive: PyTorch has one slot for such "
            f"devices and it is taken by {torch_compat.slot_holder()}. Uninstall one of them, or "
            "keep the other from taking the slot"
        )


def _is_being_imported(module_name: str) -> bool:
    # The import system's own mark on a module whose code is still running.
    spec = getattr(sys.modules.get(module_name), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def _remedy(plugin: InstalledPlugin, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        if plugin.module == error.name or plugin.module.startswith(f"{error.name}."):
            return (
                f"Its files are not there: reinstall {plugin.distribution}, or remove what is left "
                f"of it with `pip uninstall {plugin.distribution}`"
            )
        return f"Install the missing module {error.name}"
    return (
        f"Reinstall or update {plugin.distribution}, or set DEVHOST_DEVICE=none to do without it; "
        "the traceback is in devhost.status()"
    )


def _is_strict() -> bool:
    value = os.environ.get(STRICT_VARIABLE, "").strip()
    if value not in ("", "0", "1"):
        logger.error("devhost: %s=%s is ignored: it must be 0 or 1", STRICT_VARIABLE, value)
    return value == "1"
