"""What `devhost doctor` tries in child processes: torch, plugins, extensions, other backends.

Each trial returns what happened; ``verdicts`` says what that means.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from devhost import activation, checks, torch_compat
from devhost import journal as journal_module
from devhost.cli import alone, smoke
from devhost.cli.description import describe
from devhost.cli.inspection import inspect
from devhost.cli.inventory import installed_torch
from devhost.errors import DevhostError, exception_text, one_line
from devhost.journal import State, traceback_text
from devhost.manager import Hooks
from devhost.selection import NONE, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from devhost.cli.processes import Send
    from devhost.discovery import InstalledPlugin


def try_torch(send: Send) -> dict[str, Any]:
    """Import torch alone and add two numbers on the CPU.

    Returns:
        ``version`` and ``file``; or ``error`` and ``missing``: whether there is no torch at all.
    """
    send({"stage": "importing torch"})
    try:
        import torch
    except BaseException as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        return {"error": exception_text(error), "missing": missing}
    send({"stage": "adding two numbers on the CPU"})
    total = (torch.ones(2) + torch.ones(2)).tolist()
    if total != [2.0, 2.0]:
        return {"error": f"1 + 1 on the CPU is {total}", "missing": False}
    return {"version": str(torch.__version__), "file": torch.__file__}


def try_hook_module(plugin: InstalledPlugin, send: Send) -> dict[str, Any]:
    """Import a device plugin, check it and probe it, without torch, as `devhost list` does.

    Returns:
        See ``inspection.inspect``.
    """
    request = {
        "name": plugin.name,
        "value": plugin.value,
        "torch": installed_torch(),
        "extensions": (),
    }
    return inspect(request, send)


def try_plugin(plugin: InstalledPlugin, send: Send) -> dict[str, Any]:
    """Activate a device plugin alone, and test the device.

    Returns:
        What ``alone.activate`` does; ``tests`` if the device is active, see ``smoke.run``, and
        ``built_for_torch``, the version its native part was compiled against, or None;
        ``devices``, how many there are.
    """
    answer = alone.activate(plugin, send)
    supplied = activation.supplied()
    if answer["state"] == str(State.ACTIVATED) and supplied is not None:
        send({"stage": "asking for its properties"})
        answer["built_for_torch"] = alone.hooks_of(plugin).device().built_for_torch
        answer["devices"] = supplied.runtime.device_count()
        answer["tests"] = smoke.run(plugin.name, supplied, send)
    return answer


def try_extension(extension: InstalledPlugin, send: Send) -> dict[str, Any]:
    """Import an extension and check its hooks.

    Returns:
        ``error`` and ``traceback`` if it cannot be imported, or ``problems``, which may be empty.
    """
    send({"stage": f"importing {extension.value}"})
    try:
        loaded = extension.load()
    except BaseException as error:
        return {"error": exception_text(error), "traceback": traceback_text(error)}
    send({"stage": "checking its hooks"})
    return {"problems": list(checks.hook_problems(loaded, Hooks().manager, device=False))}


def try_backend(backend: InstalledPlugin, send: Send) -> dict[str, Any]:
    """Import torch, then call one entry point of the group ``torch.backends`` as torch would.

    Returns:
        ``error`` and ``traceback`` if that fails; ``slot``: the name of PyTorch's slot afterwards,
        None if it is unused; ``holder``: who has it, in words.
    """
    os.environ[VARIABLE] = NONE  # if it calls devhost.load(), that is no business of its own
    send({"stage": "importing torch"})
    import torch  # noqa: F401

    answer: dict[str, Any] = {}
    send({"stage": f"calling {backend.value}"})
    try:
        backend.load()()
    except BaseException as error:
        answer = {"error": exception_text(error), "traceback": traceback_text(error)}
    taken = torch_compat.slot_name() != torch_compat.UNUSED_SLOT
    answer["slot"] = torch_compat.slot_name() if taken else None
    answer["holder"] = torch_compat.slot_holder() if taken else ""
    return answer


def try_import(send: Send) -> dict[str, Any]:
    """Import torch as a program does, with every plugin and backend there is.

    If that does not look for plugins, because autoload is switched off, devhost.load() does.

    Returns:
        ``error`` and ``traceback`` if the import fails; ``logged``: what devhost had to say;
        ``device``, ``choice``, ``seconds`` as in ``devhost.Status``; ``by_hand``: whether it took
        devhost.load(); ``states``: those of the plugins; ``slot``: the name of PyTorch's slot, None
        if it is unused.
    """
    send({"stage": "importing torch with all plugins"})
    with alone.logged(lambda step: send({"stage": step.removeprefix("devhost: ")})) as logged:
        try:
            import torch  # noqa: F401
        except BaseException as error:
            cause = error.__cause__
            text = exception_text(error)
            if cause is not None:
                text = f"{text} The cause: {exception_text(cause)}"
            return {"error": text, "traceback": traceback_text(error), "logged": logged}
        by_hand = journal_module.current is None
        if by_hand:
            send({"stage": "calling devhost.load()"})
            try:
                activation.load()
            except DevhostError as error:
                answer = {"error": exception_text(error), "traceback": traceback_text(error)}
                return {**answer, "logged": logged}
    journal = journal_module.current
    assert journal is not None  # load() has left one
    taken = torch_compat.slot_name() != torch_compat.UNUSED_SLOT
    return {
        "logged": logged,
        "device": journal.device,
        "choice": one_line(journal.choice),
        "seconds": journal.seconds,
        "by_hand": by_hand,
        "states": [str(record.state) for record in journal.plugins],
        "slot": torch_compat.slot_name() if taken else None,
    }


_ON_ONE: dict[str, Callable[[InstalledPlugin, Send], dict[str, Any]]] = {
    "hook module": try_hook_module,
    "plugin": try_plugin,
    "extension": try_extension,
    "backend": try_backend,
    "describe": describe,
}
_ON_ALL: dict[str, Callable[[Send], dict[str, Any]]] = {"torch": try_torch, "import": try_import}


def run(request: dict[str, Any], send: Send) -> dict[str, Any]:
    """Do the trial that ``request["trial"]`` names; those on one plugin get its identity too."""
    trial = request["trial"]
    if trial in _ON_ALL:
        return _ON_ALL[trial](send)
    return _ON_ONE[trial](alone.find(request), send)
