"""Activates one plugin and nothing else, in a child process."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

from devhost import activation, checks
from devhost import journal as journal_module
from devhost.cli.inventory import take_inventory
from devhost.discovery import Installed
from devhost.errors import DevhostError, PluginError, one_line
from devhost.journal import State, traceback_text
from devhost.manager import Hooks
from devhost.selection import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devhost.cli.child import Send
    from devhost.discovery import InstalledPlugin


def identity(plugin: InstalledPlugin) -> dict[str, Any]:
    """Return what a child process finds the same plugin by."""
    return {
        "name": plugin.name,
        "value": plugin.value,
        "distribution": plugin.distribution,
        "location": plugin.location,
    }


def find(request: dict[str, Any]) -> InstalledPlugin:
    """Return the device plugin, extension or backend with that identity.

    Raises:
        LookupError: It is not there any more.
    """
    inventory = take_inventory()
    for plugin in (*inventory.devices, *inventory.extensions, *inventory.foreign_backends):
        if identity(plugin).items() <= request.items():
            return plugin
    raise LookupError(f"{request['value']} is no longer installed in {request['location']}")


def hooks_of(plugin: InstalledPlugin) -> Hooks:
    """Return the hooks of a device plugin alone, to be called by themselves."""
    hooks = Hooks()
    hooks.register_device(plugin.load(), plugin)
    return hooks


def activate(plugin: InstalledPlugin, send: Send) -> dict[str, Any]:
    """Take the plugin along the whole path of `import torch`, as if no other were installed.

    Extensions are left out as well. ``DEVHOST_DISABLE`` and the like are obeyed.

    Returns:
        ``state`` that it came to and ``reason``; for one that failed, ``problem`` and ``remedy``,
        or ``error``, and a ``traceback`` if something was raised; ``imports_torch``: whether its
        hook module does by itself; ``logged``: what devhost had to say on the way.
    """
    problems = list(checks.name_problems(plugin.name))
    if problems:  # among them names that DEVHOST_DEVICE cannot give
        return {
            "state": str(State.FAILED),
            "problem": f"cannot be the name of a device: {'; '.join(problems)}",
            "remedy": f"Rename the device, in the entry points of {plugin.distribution}",
        }
    send({"stage": f"importing {plugin.value}"})
    # What it raises, it raises again in activation, where it is explained.
    with contextlib.suppress(BaseException):
        plugin.load()
    answer: dict[str, Any] = {"imports_torch": "torch" in sys.modules}
    send({"stage": "importing torch"})
    import torch  # noqa: F401

    send({"stage": "activating it"})
    os.environ[VARIABLE] = plugin.name
    os.environ[activation.STRICT_VARIABLE] = "1"
    with logged() as answer["logged"]:
        try:
            activation.run(Installed((plugin,), (), 0.0))
        except DevhostError as error:
            if isinstance(error, PluginError):
                answer["problem"], answer["remedy"] = error.problem, error.remedy
            else:
                answer["error"] = str(error)
            if error.__cause__ is not None:
                answer["traceback"] = traceback_text(error.__cause__)
    journal = journal_module.current
    assert journal is not None  # run() has left one
    for record in journal.plugins:
        answer["state"], answer["reason"] = str(record.state), one_line(record.reason)
    return answer


@contextlib.contextmanager
def logged() -> Iterator[list[tuple[str, str]]]:
    """Yield the list of what devhost logs meanwhile: level and message, warnings and worse."""
    messages: list[tuple[str, str]] = []

    class Recorder(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append((record.levelname, record.getMessage()))

    recorder = Recorder(logging.WARNING)
    activation.logger.addHandler(recorder)
    try:
        yield messages
    finally:
        activation.logger.removeHandler(recorder)
