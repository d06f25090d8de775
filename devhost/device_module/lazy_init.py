"""Lazy initialisation: the device starts at its first use, not at `import torch`.

Calls that need a started device and may come earlier, such as ``torch.manual_seed``, wait in a
queue. Source of the semantics: ``torch.cuda._lazy_init`` and ``torch.cuda._lazy_call``.
"""

from __future__ import annotations

import os
import threading
import traceback
from typing import TYPE_CHECKING

from devhost.errors import DeferredCallError, exception_text

if TYPE_CHECKING:
    from collections.abc import Callable


class LazyInit:
    """Starts the device once, on first use, from whichever thread comes first.

    Args:
        name: Device name.
        start: Starts the runtime. Called again at the next use if it raises.
        is_in_bad_fork: Says whether this process was forked after the runtime had started.
        on_started: Called when the runtime has started, before the waiting calls run.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], None],
        is_in_bad_fork: Callable[[], bool],
        on_started: Callable[[], None],
    ) -> None:
        self._name = name
        self._start = start
        self._is_in_bad_fork = is_in_bad_fork
        self._on_started = on_started
        self._started = False
        self._ready = False
        self._running = False
        self._waiting: dict[object, tuple[Callable[[], None], traceback.StackSummary]] = {}
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_lock)

    def is_initialized(self) -> bool:
        """Return whether the device has been initialised, and can be used in this process."""
        return self._ready and not self._is_in_bad_fork()

    def init(self) -> None:
        """Initialise the device. Does nothing if it is initialised.

        There is normally no need to call this: every use of the device does.

        Raises:
            RuntimeError: This process was forked after the device had been initialised.
            DeviceUnavailableError: The plugin is installed but its hardware is not there.
            DeferredCallError: A call that waited for the initialisation failed.
        """
        if self._is_in_bad_fork():
            raise RuntimeError(
                f"Cannot re-initialize {self._name} in forked subprocess. To use {self._name} with "
                "multiprocessing, you must use the 'spawn' start method"
            )
        if self._ready:
            return
        with self._lock:
            # The runtime's own start and the waiting calls use the device, and come back here.
            if self._ready or self._running:
                return
            self._running = True
            try:
                if not self._started:
                    self._start()
                    self._started = True
                    self._on_started()
                self._run_waiting()
                self._ready = True
            finally:
                self._running = False

    def call(
        self, key: object, function: Callable[[], None], *, replaces_all: bool = False
    ) -> None:
        """Call ``function`` now if the device is initialised, else when it will be.

        In a process in which the device cannot be initialised any more (a bad fork), nothing
        happens: there is no device to call.

        Args:
            key: A waiting call with the same key is dropped, this one replaces it.
            function: What to call.
            replaces_all: Drop all waiting calls instead.
        """
        if self._is_in_bad_fork():
            return
        with self._lock:
            if self._ready or self._running:
                function()
                return
            if replaces_all:
                self._waiting.clear()
            # Source lines are looked up only if the stack is shown: torch.manual_seed comes here.
            stack = traceback.StackSummary.extract(traceback.walk_stack(None), lookup_lines=False)
            stack.reverse()
            self._waiting[key] = (function, stack)

    def _run_waiting(self) -> None:
        while self._waiting:
            # Taken out first: one that fails is reported once, and the others are not lost.
            function, stack = self._waiting.pop(next(iter(self._waiting)))
            try:
                function()
            except Exception as error:
                raise DeferredCallError(
                    f"a call on device '{self._name}' that waited for its initialisation failed: "
                    f"{exception_text(error)}\n\nThe call was made here:\n\n"
                    f"{''.join(stack.format())}"
                ) from error

    def _renew_lock(self) -> None:
        # Another thread may have held it at the fork, and does not exist in the child.
        self._lock = threading.RLock()
        self._running = False
