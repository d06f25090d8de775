"""The errors devhost raises, and how any exception becomes one line of text.

Every error message says what happened, to which plugin, and what to do about it. Messages that
reach the log are one line long, so that they can be found with grep and never bury other output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_MESSAGE_LENGTH = 600
"""Longest exception text, in characters, that is quoted in a one-line message."""


class DevhostError(Exception):
    """Base of every error that devhost raises itself."""


class SelectionError(DevhostError):
    """The configuration asks for a device that cannot be chosen, for example a misspelled one."""


class ConfigurationError(DevhostError, ValueError):
    """An environment variable of devhost has a value that means nothing."""


class DiscoveryError(DevhostError):
    """The installed distributions' metadata cannot be read."""


class InvalidDeviceNameError(DevhostError, ValueError):
    """A device name that PyTorch could not parse, or that would hide something it already has.

    Args:
        name: The refused name.
        problems: One sentence per problem.
    """

    def __init__(self, name: object, problems: Sequence[str]) -> None:
        self.name = name
        self.problems = tuple(problems)
        super().__init__(f"{name!r} cannot be the name of a device: {'; '.join(problems)}")


class SlotTakenError(DevhostError, RuntimeError):
    """PyTorch's one slot for an out-of-tree device already belongs to somebody else."""


class KernelRegistrationError(DevhostError, ValueError):
    """An operator registration that PyTorch would accept, and that would break the device."""


class DeviceUnavailableError(DevhostError, RuntimeError):
    """A device was used whose plugin is installed but found no hardware."""


class CompileBackendError(DevhostError, NotImplementedError):
    """A backend of ``torch.compile`` does not know the device."""


class DeferredCallError(DevhostError, RuntimeError):
    """A call that waited for the device to be initialised has failed."""


class PluginError(DevhostError):
    """One plugin could not be made the active device, or an extension could not take part.

    Args:
        plugin: Who it is, as ``InstalledPlugin.describe()`` gives it.
        problem: What happened, a clause that continues "device plugin X ...".
        remedy: What to do, a sentence in the imperative.
        kind: "device plugin" or "extension".
    """

    def __init__(self, plugin: str, problem: str, remedy: str, kind: str = "device plugin") -> None:
        self.plugin = plugin
        self.problem = problem
        self.remedy = remedy
        self.kind = kind
        super().__init__(f"{kind} {plugin} {problem}. {remedy}")


class PluginCheckError(PluginError):
    """A plugin does not keep the contract; every problem found is listed.

    Args:
        plugin: Who it is, as ``InstalledPlugin.describe()`` gives it.
        problems: One clause per problem.
        kind: "device plugin" or "extension".
    """

    def __init__(self, plugin: str, problems: Sequence[str], kind: str = "device plugin") -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        listed = "; ".join(f"({i}) {problem}" for i, problem in enumerate(problems, 1))
        super().__init__(
            plugin,
            f"was refused for {count}: {listed}",
            "Correct the plugin, or update it to a release that supports this devhost and torch",
            kind,
        )


def exception_text(error: BaseException) -> str:
    """Return ``Type: message`` of any exception, in one line.

    An exception whose ``str()`` itself fails is described by that failure, and a message longer
    than MAX_MESSAGE_LENGTH characters is cut: the full text is in the traceback that
    ``devhost.status()`` keeps.
    """
    kind = type(error).__name__
    try:
        message = one_line(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as failure:  # plugins raise anything, SystemExit from __str__ included
        return f"{kind} (its message cannot be shown: str() raised {type(failure).__name__})"
    if len(message) > MAX_MESSAGE_LENGTH:
        message = f"{message[:MAX_MESSAGE_LENGTH]}... ({len(message)} characters)"
    return f"{kind}: {message}" if message else kind


def one_line(text: str) -> str:
    """Return ``text`` with every run of white space as one space, and all of it printable."""
    # split() also drops the separators that split a line elsewhere: form feed, U+2028 and so on.
    line = " ".join(text.split())
    if line.isprintable():
        return line
    # A terminal would obey control characters, and a log file cannot store lone surrogates.
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
