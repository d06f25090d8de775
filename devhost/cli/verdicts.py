"""What the outcomes of ``trials`` mean: findings, each with its cause and remedy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from devhost import blocking, checks
from devhost.cli.findings import error, ok, warning
from devhost.journal import State
from devhost.selection import VARIABLE
from devhost.torch_compat import AUTOLOAD_VARIABLE, autoload_is_enabled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.specifiers import SpecifierSet

    from devhost.blocking import Blocked
    from devhost.cli.findings import Finding
    from devhost.cli.pool import Outcome
    from devhost.discovery import InstalledPlugin


def on_blocked(blocked: Blocked) -> Iterator[Finding]:
    """Yield what ``DEVHOST_DISABLE`` keeps out, which is not tried, and what it misses."""
    for plugin in blocked.plugins:
        who = f"{plugin.distribution} {plugin.version}"
        yield ok("configuration", plugin.name, f"{who} is not tried: {blocked.reason}")
    if blocked.problem:
        remedy = f"Correct {blocking.VARIABLE}"
        yield warning("configuration", blocking.VARIABLE, blocked.problem, remedy)


def on_torch(outcome: Outcome, supported: SpecifierSet) -> Iterator[Finding]:
    """Yield whether torch is there, works by itself, and is supported.

    Args:
        outcome: Of ``trials.try_torch``.
        supported: The versions that devhost supports.
    """
    result = outcome.result or {}
    seconds = outcome.seconds
    if result.get("missing"):
        cause, remedy = "torch is not installed", f"Install torch{supported}"
        yield error("torch", "", cause, remedy, seconds=seconds)
    elif problem := outcome.failure or result.get("error"):
        yield error(
            "torch",
            "",
            f"torch does not work, without any plugin: {problem}",
            "Reinstall torch; devhost is not involved, which "
            f"`{AUTOLOAD_VARIABLE}=0 python -c 'import torch'` shows",
            seconds=seconds,
        )
    elif not supported.contains(result["version"], prereleases=True):
        yield error(
            "torch",
            result["version"],
            f"this devhost supports torch{supported}, and {result['version']} is installed",
            f"Install torch{supported}, or the devhost for this torch",
            seconds=seconds,
        )
    else:
        yield ok("torch", result["version"], f"works by itself, from {result['file']}", seconds)


def on_plugin(plugin: InstalledPlugin, inspected: Outcome, outcome: Outcome) -> Iterator[Finding]:
    """Yield whether a device plugin can be activated, and what its device can do.

    Args:
        plugin: The plugin.
        inspected: Of ``trials.try_hook_module``, where it is imported without torch.
        outcome: Of ``trials.try_plugin``.
    """
    broken = _broken("plugin", plugin, outcome)
    if broken is not None:
        yield broken
        return
    result: dict[str, Any] = outcome.result or {}
    name, seconds = plugin.name, outcome.seconds
    who = f"{plugin.distribution} {plugin.version}"
    for _, message in result["logged"]:
        remedy = f"Update {plugin.distribution}, or tell its authors"
        yield warning("plugin", name, message.removeprefix("devhost: "), remedy, seconds)
    said = inspected.result or {}
    for problem in checks.ranking_problems(plugin, said.get("simulated"), said.get("priority")):
        remedy = f"Correct the entry points of {plugin.distribution}"
        yield warning("plugin", name, f"{who}: {problem}", remedy)
    if said.get("imports_torch"):
        yield warning(
            "plugin",
            name,
            f"{who}: its hook module {plugin.module} imports torch at its top, which fails where "
            f"{plugin.module} is imported before torch, and makes `devhost list` slow",
            "Import torch inside the hooks",
        )
    if result["state"] == str(State.UNAVAILABLE):
        yield warning(
            "plugin",
            name,
            f"{who} is sound, but its device is not available here: {result['reason']}",
            "Nothing, if there is no such device here; otherwise remove this cause",
            seconds,
        )
    elif result["state"] != str(State.ACTIVATED):
        yield ok("plugin", name, f"{who} was not tried: {result['reason']}", seconds)
    else:
        yield from _on_tests(plugin, result, seconds)


def _on_tests(plugin: InstalledPlugin, result: dict[str, Any], seconds: float) -> Iterator[Finding]:
    who = f"{plugin.distribution} {plugin.version}"
    by_outcome: dict[str, list[str]] = {}
    for test in result["tests"]:
        by_outcome.setdefault(test["outcome"], []).append(test["name"])
        if test["outcome"] == "failed":
            yield error(
                "plugin",
                plugin.name,
                f"{who} is active, but the test '{test['name']}' failed: {test['text']}",
                f"Update {plugin.distribution}, or send the report below to its authors",
                seconds=seconds,
            )
        elif test["outcome"] == "missing":
            yield warning(
                "plugin",
                plugin.name,
                f"{who} cannot do the test '{test['name']}': {test['text']}",
                f"Do without, or ask the authors of {plugin.distribution} for the operator",
                seconds,
            )
    if "failed" in by_outcome:
        return
    built_for = result["built_for_torch"]
    parts = [f"{who} works: {_counted(result['devices'], 'device')}"]
    parts += [f"native part built for torch {built_for}"] if built_for else []
    parts += [f"passed {', '.join(by_outcome['passed'])}"] if "passed" in by_outcome else []
    parts += [f"has no {', '.join(by_outcome['skipped'])}"] if "skipped" in by_outcome else []
    yield ok("plugin", plugin.name, "; ".join(parts), seconds)


def on_plugin_without_torch(plugin: InstalledPlugin, outcome: Outcome) -> Iterator[Finding]:
    """Yield whether a plugin is sound, as far as that shows without torch.

    Args:
        plugin: The plugin.
        outcome: Of ``trials.try_hook_module``.
    """
    result = outcome.result or {}
    broken = _broken("plugin", plugin, outcome)
    if broken is not None:
        yield broken
    elif not result["available"]:
        yield warning(
            "plugin",
            plugin.name,
            f"its device is not available here: {result['reason']}",
            "Nothing, if there is no such device here; otherwise remove this cause",
            outcome.seconds,
        )
    else:
        what = f"{plugin.distribution} {plugin.version} is sound as far as that shows without torch"
        yield ok("plugin", plugin.name, what, outcome.seconds)


def on_extension(plugin: InstalledPlugin, outcome: Outcome) -> Iterator[Finding]:
    """Yield whether an extension can be used.

    Args:
        plugin: The extension.
        outcome: Of ``trials.try_extension``.
    """
    broken = _broken("extension", plugin, outcome)
    what = f"{plugin.distribution} {plugin.version} can be loaded, and its hooks are sound"
    yield broken or ok("extension", plugin.name, what, outcome.seconds)


def on_backend(
    backend: InstalledPlugin, outcome: Outcome, *, beside_plugins: bool
) -> Iterator[Finding]:
    """Yield what another package in the group ``torch.backends`` does to PyTorch's slot.

    Args:
        backend: Its entry point.
        outcome: Of ``trials.try_backend``.
        beside_plugins: Whether devhost has plugins that want the slot.
    """
    result = outcome.result or {}
    who = f"{backend.distribution} {backend.version} ({backend.value})"
    problem = _problem(outcome)
    took = f", after taking PyTorch's slot as {result['holder']}" if result.get("slot") else ""
    remedy = (
        f"Update or uninstall {backend.distribution}; {AUTOLOAD_VARIABLE}=0 keeps torch from "
        "calling it"
    )
    if problem:
        yield error(
            "backend",
            backend.name,
            f"{who}, which `import torch` calls without devhost, {problem}{took}",
            remedy,
            result.get("traceback", ""),
            outcome.seconds,
        )
    elif result["slot"] is None:
        cause = f"{who}, which `import torch` calls as well, changes nothing of PyTorch's slot"
        yield ok("backend", backend.name, cause, outcome.seconds)
    elif beside_plugins:
        yield warning(
            "backend",
            backend.name,
            f"{who} takes PyTorch's slot, as {result['holder']}, so that devhost's plugins stay "
            "inactive",
            f"Uninstall {backend.distribution}, or the plugins; or set {VARIABLE}=none to do "
            "without the plugins",
            outcome.seconds,
        )
    else:
        cause = f"{who} takes PyTorch's slot, as {result['holder']}"
        yield ok("backend", backend.name, cause, outcome.seconds)


def _problem(outcome: Outcome) -> str:
    """Return the clause that says how a trial went wrong; empty if it did not."""
    raised = (outcome.result or {}).get("error")
    return outcome.failure or (f"fails: {raised}" if raised else "")


def on_import(outcome: Outcome) -> Iterator[Finding]:
    """Yield what `import torch` comes to with everything that is installed and configured.

    Args:
        outcome: Of ``trials.try_import``.
    """
    result: dict[str, Any] = outcome.result or {}
    seconds = outcome.seconds
    problem = _problem(outcome)
    if problem:
        yield error(
            "import",
            "",
            f"with everything that is installed, `import torch` {problem}",
            f"See the other findings; {AUTOLOAD_VARIABLE}=0 imports torch without any plugin",
            result.get("traceback", ""),
            seconds,
        )
        return
    for level, message in result["logged"]:
        report = warning if level == "WARNING" else error
        yield report(
            "import", "", message.removeprefix("devhost: "), _import_remedy(result), seconds=seconds
        )
    device = result["device"]
    autoload = autoload_is_enabled(os.environ)
    how = "`import torch`" if autoload else "devhost.load()"
    if device is not None and autoload and result["by_hand"]:
        yield error(
            "import",
            "",
            "`import torch` has not called devhost, and devhost.load() works",
            "Update devhost: this torch calls backends in another way than it knows",
            seconds=seconds,
        )
    elif not result["logged"]:
        available = str(State.ACTIVATED) in result["states"]
        what = f"device '{device}'" if device is not None else "no device"
        note = "" if device is None or available else ", which is not available"
        took = f" ({result['seconds'] * 1e3:.0f} ms in devhost and the plugin)" if device else ""
        yield ok("import", "", f"{how} activates {what}{note}: {result['choice']}{took}", seconds)


def _import_remedy(result: dict[str, Any]) -> str:
    if result["device"] is not None:
        return "Update the plugin, or tell its authors"
    if result["slot"] is not None:
        return f"Uninstall one of the two, or set {VARIABLE}=none to do without devhost's plugins"
    if str(State.FAILED) in result["states"]:
        return f"See what is said about the plugin; {VARIABLE}=none does without it"
    return f"Set {VARIABLE} to the name of an installed plugin, or to none"


def _broken(check: str, plugin: InstalledPlugin, outcome: Outcome) -> Finding | None:
    """Return the finding about a plugin that cannot be used at all, or None."""
    result = outcome.result or {}
    if outcome.failure:
        problem = outcome.failure
    elif "problem" in result:
        problem = result["problem"]
    elif "error" in result:
        problem = f"fails: {result['error']}"
    elif result.get("problems"):
        problem = f"was refused: {'; '.join(result['problems'])}"
    else:
        return None
    remedy = result.get("remedy") or (
        f"Update or reinstall {plugin.distribution}; or uninstall it, if nobody needs it"
    )
    return error(
        check,
        plugin.name,
        f"{plugin.describe()} {problem}",
        remedy,
        result.get("traceback", ""),
        outcome.seconds,
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
