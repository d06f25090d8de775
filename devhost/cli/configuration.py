"""Checks of the environment variables that devhost reads, and of those that look like it."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from devhost import blocking, fallback, selection
from devhost.activation import STRICT_VALUES, STRICT_VARIABLE
from devhost.cli.findings import error, ok, warning
from devhost.errors import ConfigurationError
from devhost.torch_compat import AUTOLOAD_VARIABLE, autoload_is_enabled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from devhost.cli.findings import Finding

PREFIX = "DEVHOST_"
KNOWN = (selection.VARIABLE, blocking.VARIABLE, STRICT_VARIABLE, fallback.VARIABLE)
"""Every variable that devhost reads."""


def configuration_findings(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what is set, and what of it has no effect or not the one that is meant.

    Whether ``DEVHOST_DEVICE`` names an installed plugin shows in what `import torch` does.
    """
    ours = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    faults = [*_unknown(ours), *_invalid(environ), *_autoload(environ)]
    if not faults:
        shown = ", ".join(f"{name}={value}" for name, value in sorted(ours.items()))
        faults.append(ok("configuration", "", shown or f"no variable {PREFIX}* is set"))
    yield from faults


def _unknown(ours: Mapping[str, str]) -> Iterator[Finding]:
    for name in sorted(set(ours) - set(KNOWN)):
        # Without what they all begin with, which would make any two of them alike.
        known = {known.removeprefix(PREFIX): known for known in KNOWN}
        near = difflib.get_close_matches(name.removeprefix(PREFIX), known, n=1)
        yield warning(
            "configuration",
            name,
            f"{name} is set, and devhost has no such variable: it has no effect",
            f"Did you mean {known[near[0]]}?" if near else f"devhost reads {', '.join(KNOWN)}",
        )


def _invalid(environ: Mapping[str, str]) -> Iterator[Finding]:
    strict = environ.get(STRICT_VARIABLE, "").strip()
    if strict not in STRICT_VALUES:
        yield warning(
            "configuration",
            STRICT_VARIABLE,
            f"{STRICT_VARIABLE}={strict} is ignored: it must be 0 or 1",
            f"Set {STRICT_VARIABLE} to 0 or 1, or unset it",
        )
    try:
        fallback.policy_from(environ)
    except ConfigurationError as problem:
        yield error(
            "configuration",
            fallback.VARIABLE,
            f"{problem}; plugins with a fallback are refused",
            f"Set {fallback.VARIABLE} to one of these, or unset it",
        )


def _autoload(environ: Mapping[str, str]) -> Iterator[Finding]:
    if not autoload_is_enabled(environ):
        value = environ[AUTOLOAD_VARIABLE]
        yield warning(
            "configuration",
            AUTOLOAD_VARIABLE,
            f"{AUTOLOAD_VARIABLE}={value} switches autoload off: torch loads backends by itself "
            "only if it is unset or exactly 1",
            f"Unset {AUTOLOAD_VARIABLE}, or call devhost.load() in the program",
        )
