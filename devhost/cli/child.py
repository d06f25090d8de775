"""The process in which a command runs one plugin's code, so that it may crash or hang there.

Reports to the parent as lines of JSON: ``{"stage": ...}`` before each step, which tells where a
crash happened, and ``{"result": ...}`` at the end.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from devhost.cli import inspection
from devhost.errors import exception_text

if TYPE_CHECKING:
    from devhost.cli.processes import Send


def main(request: dict[str, Any]) -> None:
    """Do what the parent asks and end the process.

    Args:
        request: What to do and with which arguments: one of ``{"inspect": {...}}`` and
            ``{"select": {...}}``, or ``{"trial": ..., ...}`` for those in ``trials``. Extensions
            among the arguments are InstalledPlugin.
    """
    # The plugin may print: its output goes where errors go, the real one is for the parent.
    channel = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    try:
        answer = _answer(request, send)
    except BaseException as error:  # SystemExit as well: whatever it is, it is the answer
        answer = {"error": exception_text(error)}
    send({"result": answer})
    # At exit a plugin's threads or handlers may still hang or crash; the answer is given.
    os._exit(0)


def _answer(request: dict[str, Any], send: Send) -> dict[str, Any]:
    if "inspect" in request:
        return inspection.inspect(request["inspect"], send)
    if "select" in request:
        return inspection.ask(request["select"], send)
    from devhost.cli import trials  # not for `devhost list`, which is to be fast

    return trials.run(request, send)
