"""Which plugins ``DEVHOST_DISABLE`` keeps out, before they are imported and before any choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devhost.discovery import nearest_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from devhost.discovery import InstalledPlugin

VARIABLE = "DEVHOST_DISABLE"


class Blocked:
    """What is kept out.

    Attributes:
        plugins: Device plugins and extensions that are neither imported nor chosen.
        source: The variable with its value, as messages quote it; empty if it is not set.
        problem: The names that fit no plugin, one sentence; empty if there are none.
    """

    def __init__(
        self, plugins: tuple[InstalledPlugin, ...] = (), source: str = "", problem: str = ""
    ) -> None:
        self.plugins = plugins
        self.source = source
        self.problem = problem

    @property
    def reason(self) -> str:
        """Why each of the plugins is kept out."""
        return f"{self.source} keeps it out"


NOTHING_BLOCKED = Blocked()


def block(
    devices: Sequence[InstalledPlugin],
    extensions: Sequence[InstalledPlugin],
    environ: Mapping[str, str],
) -> Blocked:
    """Return what ``DEVHOST_DISABLE`` keeps out of what is installed.

    Args:
        devices: The installed device plugins.
        extensions: The installed extensions.
        environ: Environment variables.
    """
    names = [name.strip() for name in environ.get(VARIABLE, "").split(",") if name.strip()]
    if not names:
        return NOTHING_BLOCKED
    source = f"{VARIABLE}={','.join(names)}"
    plugins = (*devices, *extensions)
    # Unlike a choice, which has to be unambiguous, a name keeps out everything that it fits.
    blocked = tuple(p for p in plugins if any(p.is_called(name) for name in names))
    unknown = [name for name in names if not any(p.is_called(name) for p in plugins)]
    # Where there is nothing to keep out, nothing is wrong with a variable set for many machines.
    if not unknown or not plugins:
        return Blocked(blocked, source)
    quoted = " and ".join(f"'{name}'" for name in unknown)
    near = nearest_names(unknown, plugins)
    return Blocked(
        blocked, source, f"{source}: nothing is installed that is called {quoted}.{near}"
    )
