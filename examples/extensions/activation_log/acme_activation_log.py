"""Writes one line of JSON for every process that got a device, for the monitoring of a fleet.

The file is named by ACME_ACTIVATION_LOG; without it nothing is written.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from devhost import hookimpl

if TYPE_CHECKING:
    from devhost import Status


@hookimpl
def devhost_activated(status: Status) -> None:
    """Append who was activated, whether its hardware is there, and how long each step took."""
    file = os.environ.get("ACME_ACTIVATION_LOG")
    if not file:
        return
    plugin = next(plugin for plugin in status.plugins if plugin.name == status.device)
    record = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "pid": os.getpid(),
        "device": plugin.name,
        "plugin": plugin.distribution,
        "version": plugin.version,
        "state": str(plugin.state),
        "reason": plugin.reason or status.choice,
        "milliseconds": {step.name: round(step.seconds * 1e3, 3) for step in plugin.steps},
    }
    # One short write at the end of the file: lines of processes that start together stay whole.
    with Path(file).open("a", encoding="utf-8") as log:
        log.write(json.dumps(record) + "\n")
