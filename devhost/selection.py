"""Which of the installed device plugins gets PyTorch's one slot, and why.

The rules are asked in order, and the first that answers decides:

1. ``DEVHOST_DEVICE``, set by the user: a name, names in order of preference, or ``none``.
2. ``devhost_select``, implemented by a site's extension.
3. The only plugin there is.

If none of them answers, several plugins are installed and nobody chose: none is activated.
Choosing imports nothing of a plugin, so the others' code never runs.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

from devhost.discovery import normalize
from devhost.errors import SelectionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from devhost.discovery import InstalledPlugin

VARIABLE = "DEVHOST_DEVICE"
NONE = "none"


class Selection(NamedTuple):
    """The outcome of the rules.

    Attributes:
        plugins: What to activate, in order of preference: the first available one wins. Empty if
            nothing is to be activated.
        reason: Why, one sentence.
        disabled: True if somebody asked for no device at all.
    """

    plugins: tuple[InstalledPlugin, ...]
    reason: str
    disabled: bool = False


def select(
    installed: Sequence[InstalledPlugin],
    environ: Mapping[str, str],
    ask_site: Callable[[], object] | None = None,
) -> Selection:
    """Apply the rules.

    Args:
        installed: The installed device plugins.
        environ: Environment variables.
        ask_site: Calls the extensions' ``devhost_select``; None if there are no extensions.

    Raises:
        SelectionError: A rule names a plugin that is not installed, or several at once.
    """
    wanted = environ.get(VARIABLE, "").strip()
    if wanted:
        return _named(wanted, f"{VARIABLE}={wanted}", installed)
    if not installed:
        return Selection((), "no device plugin is installed")
    answer = ask_site() if ask_site is not None else None
    if answer is not None:
        if not isinstance(answer, str) or not answer.strip():
            raise SelectionError(
                f"an extension's devhost_select returned {answer!r}; it must return the name of an "
                f"installed device plugin, '{NONE}' or None"
            )
        return _named(answer, f"the site's devhost_select chose '{answer}'", installed)
    if len(installed) == 1:
        return Selection(tuple(installed), "it is the only device plugin installed")
    return Selection(
        (),
        f"{len(installed)} device plugins are installed ({_listed(installed)}) and none was "
        f"chosen: set {VARIABLE} to one of them, or to '{NONE}' to silence this",
    )


def _named(wanted: str, source: str, installed: Sequence[InstalledPlugin]) -> Selection:
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    if names == [NONE]:
        return Selection((), f"{source} switches device plugins off", disabled=True)
    if NONE in names:
        raise SelectionError(f"{source}: '{NONE}' cannot be combined with other names")
    if not names:
        raise SelectionError(f"{source} names no device plugin; installed: {_listed(installed)}")

    chosen: list[InstalledPlugin] = []
    missing: list[str] = []
    for name in names:
        plugin = _find(name, source, installed)
        if plugin is None:
            missing.append(name)
        elif plugin not in chosen:
            chosen.append(plugin)
    if not chosen:
        raise SelectionError(f"{source}: {_not_installed(missing, installed)}")
    # A list is meant for machines that differ, so names that one of them lacks are no error; but
    # they are recorded, because one of them may be a misspelling.
    skipped = f"; not installed: {', '.join(missing)}" if missing else ""
    return Selection(tuple(chosen), source + skipped)


def _find(name: str, source: str, installed: Sequence[InstalledPlugin]) -> InstalledPlugin | None:
    # A device name wins over a distribution of the same name: `foo` may well be both.
    key = normalize(name)
    matches = [p for p in installed if normalize(p.name) == key]
    matches = matches or [p for p in installed if normalize(p.distribution) == key]
    if len(matches) > 1:
        raise SelectionError(
            f"{source}: '{name}' is ambiguous, it fits {_listed(matches)}. Give the "
            f"{'distribution' if normalize(matches[0].name) == key else 'device'} name instead"
        )
    return matches[0] if matches else None


def _not_installed(names: Sequence[str], installed: Sequence[InstalledPlugin]) -> str:
    known = {normalize(n): n for p in installed for n in (p.distribution, p.name)}
    near = difflib.get_close_matches(normalize(names[0]), known, n=1)
    hint = f". Did you mean '{known[near[0]]}'?" if near else ""
    quoted = " or ".join(f"'{name}'" for name in names)
    return f"no device plugin {quoted} is installed; installed: {_listed(installed)}{hint}"


def _listed(installed: Sequence[InstalledPlugin]) -> str:
    return ", ".join(f"{p.name} ({p.distribution})" for p in installed) or "none"
