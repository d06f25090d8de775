"""What an entry of the fault table says."""

from collections.abc import Callable
from typing import Any, NamedTuple

NO_SUCH_DEVICE = (
    "RuntimeError: Expected one of cpu, cuda, ",
    " device type at start of device string: faulty",
)
NO_MODULE = ("ModuleNotFoundError: No module named 'torch.faulty'",)
NO_KERNEL = ("NotImplementedError: Could not run 'aten::empty.memory_format'", "'faulty' backend")


class Fault(NamedTuple):
    """One thing that can be wrong.

    Attributes:
        title: What is wrong, a clause that continues "What happens when ...".
        cause: Words that tell it: in the log of `import torch`, in what ``torch.faulty`` and
            `devhost doctor` say, and in `devhost list` if the plugin fails there.
        log: Further words in the same line of the log, such as the remedy.
        warning: Words of a line of its own in the log, about what did not keep the plugin from
            working.
        logged: Whether anything can be logged at all.
        imports: What the program imports first.
        options: Options of its interpreter.
        state: The plugin's state in ``devhost.status()`` afterwards.
        first_use: Words of what ``torch.ones(1, device="faulty")`` raises; empty if it works.
        has_module: Whether ``torch.<name>`` exists although the device is not there.
        slot: Name of PyTorch's slot afterwards.
        kept: What stays changed in the process, by the names in test_faults.TRIAL.
        ending: What ends the program that imports torch: 0 if nothing does, an exit status, a
            negative number for a signal, None if it waits for ever.
        error: Words of what `import torch` raises, if ``ending`` is no crash.
        without: Environment variables that give torch back where ``ending`` is not 0.
        status: The plugin's status in `devhost list`, which imports, checks and probes it, but does
            not activate it.
        reason: Words of the reason there; None for those of ``cause``.
        alone: The plugin's severity in `devhost doctor`, which activates it alone and tests its
            device, if that differs from how it fares in a program.
        value: Value of the entry point, if it is not the module with the fault's name.
        metadata: Further lines of METADATA.
        install: How to install it, if not as one distribution with the fault's name.
    """

    title: str
    cause: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    warning: tuple[str, ...] = ()
    logged: bool = True
    imports: str = "torch"
    options: tuple[str, ...] = ()
    state: str = "failed"
    first_use: tuple[str, ...] = NO_SUCH_DEVICE
    has_module: bool = False
    slot: str = "privateuseone"
    kept: dict[str, Any] = {}  # noqa: RUF012 - a default that nobody writes to
    ending: int | None = 0
    error: tuple[str, ...] = ()
    without: dict[str, str] = {"DEVHOST_DEVICE": "none"}  # noqa: RUF012
    status: str = "failed"
    reason: tuple[str, ...] | None = None
    alone: str | None = None
    value: str = ""
    metadata: str = ""
    install: Callable[[Any, str], None] | None = None


def harmless(title: str, **fields: Any) -> Fault:
    """Return a fault in spite of which the device works."""
    defaults = {"state": "activated", "first_use": (), "slot": "faulty", "status": "available"}
    return Fault(title, **{**defaults, "reason": (), **fields})


def at_activation(title: str, *cause: str, **fields: Any) -> Fault:
    """Return a fault that shows when the plugin is activated, which `devhost list` does not do."""
    return Fault(title, cause, status="available", **{"reason": (), **fields})


def deadly(title: str, ending: int | None, *reason: str, **fields: Any) -> Fault:
    """Return a fault that no code in the same process can survive."""
    return Fault(title, ending=ending, reason=reason, **fields)
