"""Which of the installed device plugins gets PyTorch's one slot, and why.

The rules are asked in order, and the first that answers decides:

1. ``DEVHOST_DEVICE``, set by the user for a process: a name, names in order of preference, or
   ``none``.
2. The same, saved for the environment by `devhost use`.
3. ``devhost_select``, implemented by a site's extension.
4. The only plugin there is.
5. The ranking: real hardware before simulated devices, then the higher priority. Both are declared
   in metadata, in the entry-point group ``devhost.ranking``, so that nothing has to be imported.

A ranking is an order of preference, like a list of names: the first plugin whose hardware is there
is activated. devhost never chooses between equals, so the ranking ends where two plugins are equal,
and if that is at its top, nothing is activated and a message says how to choose.

Choosing imports nothing of a plugin, so the others' code never runs. What ``DEVHOST_DISABLE`` keeps
out (see ``devhost.blocking``) is no longer there when the rules are asked.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from devhost import saved_choice
from devhost.blocking import NOTHING_BLOCKED
from devhost.discovery import choice_file, has_saved_choice, nearest_names, normalize
from devhost.errors import SelectionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from devhost.blocking import Blocked
    from devhost.discovery import InstalledPlugin

VARIABLE = "DEVHOST_DEVICE"
NONE = "none"


class Selection:
    """The outcome of the rules.

    Attributes:
        plugins: What to activate, in order of preference: the first available one wins. Empty if
            nothing is to be activated.
        reason: Why, one sentence.
        disabled: True if somebody asked for no device at all.
    """

    def __init__(
        self, plugins: tuple[InstalledPlugin, ...], reason: str, disabled: bool = False
    ) -> None:
        self.plugins = plugins
        self.reason = reason
        self.disabled = disabled


def select(
    installed: Sequence[InstalledPlugin],
    environ: Mapping[str, str],
    ask_site: Callable[[], object] | None = None,
    blocked: Blocked = NOTHING_BLOCKED,
) -> Selection:
    """Apply the rules.

    Args:
        installed: The installed device plugins, sorted.
        environ: Environment variables.
        ask_site: Calls the extensions' ``devhost_select``; None if there are no extensions.
        blocked: What is not to be chosen.

    Raises:
        SelectionError: A rule names a plugin that is not installed or is blocked, or several at
            once, or the saved choice cannot be read.
    """
    wanted = environ.get(VARIABLE, "").strip()
    if wanted:
        selection = named(wanted, f"{VARIABLE}={wanted}", installed, blocked)
        if has_saved_choice():
            selection.reason += f"; this overrides the choice saved in {choice_file()}"
        return selection

    saved = saved_choice.read()
    if saved is not None:
        source = f"the choice '{saved}' saved by `devhost use` in {choice_file()}"
        try:
            return named(saved, source, installed, blocked)
        except SelectionError as error:
            stop = "" if str(error).endswith("?") else "."
            raise SelectionError(f"{error}{stop} {saved_choice.REMEDY}") from None

    free = [plugin for plugin in installed if plugin not in blocked.plugins]
    if not free:
        if installed:
            return Selection((), f"{blocked.source} keeps all device plugins out", disabled=True)
        return Selection((), "no device plugin is installed")
    answer = ask_site() if ask_site is not None else None
    if answer is not None:
        if not isinstance(answer, str) or not answer.strip():
            raise SelectionError(
                f"an extension's devhost_select returned {answer!r}; it must return the name of an "
                f"installed device plugin, '{NONE}' or None"
            )
        return named(answer, f"the site's devhost_select chose '{answer}'", installed, blocked)
    if len(free) == 1:
        others = "" if len(installed) == 1 else f" that {blocked.source} does not keep out"
        return Selection(tuple(free), f"it is the only device plugin installed{others}")
    return _ranked(free)


def named(
    wanted: str,
    source: str,
    installed: Sequence[InstalledPlugin],
    blocked: Blocked = NOTHING_BLOCKED,
    *,
    every: bool = False,
) -> Selection:
    """Return the plugins that somebody named.

    Args:
        wanted: A device or distribution name, several with commas between them in order of
            preference, or ``none``.
        source: Who named them, for messages.
        installed: The installed device plugins.
        blocked: What is not to be chosen.
        every: Demand that every name fits, and not only one of them.

    Raises:
        SelectionError: The names do not fit, or are ambiguous.
    """
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    if names == [NONE]:
        return Selection((), f"{source} switches device plugins off", disabled=True)
    if NONE in names:
        raise SelectionError(f"{source}: '{NONE}' cannot be combined with other names")
    if not names:
        raise SelectionError(f"{source} names no device plugin; installed: {_listed(installed)}")

    free = [plugin for plugin in installed if plugin not in blocked.plugins]
    chosen: list[InstalledPlugin] = []
    missing: list[str] = []
    disabled: list[str] = []
    for name in names:
        plugin = _find(name, source, free)
        if plugin is not None:
            if plugin not in chosen:
                chosen.append(plugin)
        elif any(p.is_called(name) for p in installed):
            disabled.append(name)
        else:
            missing.append(name)
    if not chosen or (every and missing):
        problems = [f"'{name}' is disabled by {blocked.source}" for name in disabled]
        problems += [_not_installed(missing, installed)] if missing else []
        raise SelectionError(f"{source}: {'; '.join(problems)}")
    # A list is meant for machines that differ, so names that one of them lacks are no error; but
    # they are recorded, because one of them may be a misspelling.
    notes = [f"not installed: {', '.join(missing)}"] if missing else []
    notes += [f"disabled by {blocked.source}: {', '.join(disabled)}"] if disabled else []
    return Selection(tuple(chosen), "; ".join([source, *notes]))


def _ranked(installed: Sequence[InstalledPlugin]) -> Selection:
    ranking: list[InstalledPlugin] = []
    tie = ""
    for _, group in itertools.groupby(sorted(installed, key=_rank), key=_rank):
        equals = list(group)
        if len(equals) > 1:
            tie = f"{_listed(equals)} are equal, {_described(equals[0])} each"
            break
        ranking += equals
    if not ranking:
        return Selection(
            (),
            f"{len(installed)} device plugins are installed and none comes first: {tie}. Set "
            f"{VARIABLE} to one of them, or save a choice with `devhost use NAME`; '{NONE}' "
            "silences this",
        )
    names = ", ".join(f"{plugin.name} ({_described(plugin)})" for plugin in ranking)
    end = f". The ranking ends there: {tie}" if tie else ""
    return Selection(
        tuple(ranking),
        f"nobody chose, so the first available by kind and priority is taken: {names}{end}",
    )


def _rank(plugin: InstalledPlugin) -> tuple[bool, int]:
    return plugin.simulated, -plugin.priority


def ranking_text(simulated: bool, priority: int) -> str:
    """Return the kind and the priority of a device as messages name them."""
    return f"{'simulated' if simulated else 'hardware'} of priority {priority}"


def _described(plugin: InstalledPlugin) -> str:
    return ranking_text(plugin.simulated, plugin.priority)


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
    near = nearest_names(names, installed)
    quoted = " or ".join(f"'{name}'" for name in names)
    hint = f".{near}" if near else ""
    return f"no device plugin {quoted} is installed; installed: {_listed(installed)}{hint}"


def _listed(installed: Iterable[InstalledPlugin]) -> str:
    return ", ".join(f"{p.name} ({p.distribution})" for p in installed) or "none"
