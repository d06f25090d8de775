"""The entry point that torch calls at the end of `import torch`.

It is on the path of every program that imports torch, also where no plugin is installed. So it
imports next to nothing, and the rest of devhost only when there is something to do.
"""

from __future__ import annotations

import gc
import os
import time


def autoload() -> None:
    """Find the installed device plugins and activate one of them; see ``devhost.load``.

    Called once by torch, through the entry point ``devhost`` in the group ``torch.backends``.

    Raises:
        DevhostError: Only with ``DEVHOST_STRICT=1``.
    """
    start = time.perf_counter()
    # What is made here stays. A garbage collection would find nothing, and go over what torch has
    # made so far, which takes a tenth of the time that is spent here.
    collects = gc.isenabled()
    gc.disable()
    try:
        _autoload(start)
    finally:
        if collects:
            gc.enable()


def _autoload(start: float) -> None:
    from devhost.discovery import discover, has_saved_choice
    from devhost.errors import DiscoveryError

    try:
        installed = discover()
    except DiscoveryError:
        installed = None  # looked for again below, where errors are reported
    nothing_installed = installed is not None and not installed.devices
    # A choice may name a plugin that is not installed, which has to be said.
    if nothing_installed and not os.environ.get("DEVHOST_DEVICE") and not has_saved_choice():
        return

    from devhost.activation import is_being_imported, run

    if installed is None or not installed.foreign_backends or not is_being_imported("torch"):
        run(installed, start)
        return

    # Others hang on the same group, and torch calls them in an order that installation decides. A
    # vendor's backend whose turn came after ours would fail to take the slot, and `import torch`
    # with it. So ours is always the last: the slot is either taken by then, or nobody wants it.
    from devhost.torch_compat import call_after_backends

    spent = time.perf_counter() - start
    call_after_backends(lambda: run(installed, time.perf_counter() - spent))
