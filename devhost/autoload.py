"""The entry point that torch calls at the end of `import torch`.

It is on the path of every program that imports torch, also where no plugin is installed. So it
imports next to nothing, and the rest of devhost only when there is something to do.
"""

from __future__ import annotations

import os
import time


def autoload() -> None:
    """Find the installed device plugins and activate one of them; see ``devhost.load``.

    Called once by torch, through the entry point ``devhost`` in the group ``torch.backends``.

    Raises:
        DevhostError: Only with ``DEVHOST_STRICT=1``.
    """
    start = time.perf_counter()
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

    from devhost.activation import run

    run(installed, start)
