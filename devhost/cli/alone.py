"""Activates one plugin and nothing else, in a child process."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

from devhost import activation, guards
from devhost import journal as journal_module
from devhost.cli.inventory import take_inventory
from devhost.errors import DevhostError, PluginError, one_line
from devhost.journal import traceback_text
from devhost.manager import Hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from devhost.cli.processes import Send
    from devhost.discovery import InstalledPlugin


_IDENTITY = ("name", "value", "location", "distribution")  # those that cost nothing first


def identity(plugin: InstalledPlugin) -> dict[str, Any]:
    """Return what a child process finds the same plugin by."""
    return {field: getattr(plugin, field) for field in _IDENTITY}


def find(request: dict[str, Any]) -> InstalledPlugin:
    """Return the device plugin, extension or backend with that identity.

    Raises:
        LookupError: It is not there any more.
    """
    inventory = take_inventory()
    for plugin in (*inventory.devices, *inventory.extensions, *inventory.foreign_backends):
        if all(getattr(plugin, field) == request[field] for field in _IDENTITY):
            return plugin
    raise LookupError(f"{request['value']} is no longer installed in {request['location']}")


def hooks_of(plugin: InstalledPlugin) -> Hooks:
    """Return the hooks of a device plugin alone, to be called by themselves."""
    hooks = Hooks()
    hooks.register_device(plugin.load(), plugin)
    return hooks


def activate(plugin: InstalledPlugin, send: Send) -> dict[str, Any]:
    """Take the plugin along the whole path of `import torch`, as if nothing else were installed.

    Returns:
        ``state`` that it came to and ``reason``; for one that failed, ``problem`` and ``remedy``,
        or ``error``, and a ``traceback`` if something was raised; ``logged``: what devhost had to
        say on the way.
    """
    send({"stage": "importing torch"})
    import torch  # noqa: F401

    answer: dict[str, Any] = {}
    prefix = f"devhost: '{plugin.name}': "
    with logged(lambda step: send({"stage": step.removeprefix(prefix)})) as answer["logged"]:
        try:
            activation.run(only=plugin)
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
def logged(on_step: Callable[[str], None]) -> Iterator[list[tuple[str, str]]]:
    """Yield the list of what devhost logs meanwhile: level and message, warnings and worse.

    Args:
        on_step: Called with each message about a step that is beginning.
    """
    messages: list[tuple[str, str]] = []

    class Recorder(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno == logging.DEBUG:
                on_step(record.getMessage())
            elif record.levelno >= logging.WARNING:
                messages.append((record.levelname, record.getMessage()))

    recorder = Recorder()
    guards.logger.addHandler(recorder)
    guards.logger.setLevel(logging.DEBUG)  # of a process that is there for nothing else
    try:
        yield messages
    finally:
        guards.logger.removeHandler(recorder)
