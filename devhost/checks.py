"""Is a plugin fit for PyTorch's slot? Everything that can be known before the rename is checked.

The rename cannot be undone, so it is the last thing to happen. Each function here yields problems
as clauses, and does not stop at the first, so that a plugin author sees all of them at once.
"""

from __future__ import annotations

import difflib
import inspect
import keyword
import string
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from devhost import hookspecs, torch_compat
from devhost.discovery import RANKING_GROUP
from devhost.errors import InvalidDeviceNameError
from devhost.hookspecs import EXTENSION_HOOKS, PROJECT_NAME, REQUIRED_HOOKS, SPEC_VERSION
from devhost.selection import NONE, ranking_text
from devhost.types import (
    AmpPolicy,
    DeviceInfo,
    DeviceRng,
    DeviceRuntime,
    ProbeResult,
    required_members,
)

if TYPE_CHECKING:
    import pluggy

    from devhost.discovery import InstalledPlugin

_NAME_CHARACTERS = frozenset(string.ascii_lowercase + "_")


def validate_name(name: str) -> None:
    """Check that ``name`` can become the name of an out-of-tree device.

    PyTorch itself accepts any string, for good; the errors come later. Imports torch.

    Args:
        name: The name to check.

    Raises:
        InvalidDeviceNameError: A ValueError that lists every problem.
    """
    problems = list(name_problems(name))
    if not problems:
        problems += torch_compat.name_collisions(name)
    if problems:
        raise InvalidDeviceNameError(name, problems)


def name_problems(name: object) -> Iterator[str]:
    """Yield what is wrong with a device name as far as it can be told without torch."""
    # torch.device parses letters and underscores, compares in lower case, and takes digits for a
    # malformed index.
    if not isinstance(name, str) or not _NAME_CHARACTERS.issuperset(name) or not name.strip("_"):
        yield (
            "torch.device() cannot parse it: a name consists of lower-case letters a to z and "
            "underscores, with at least one letter"
        )
        return
    if name in torch_compat.IN_TREE_DEVICES:
        yield f"'{name}' is one of PyTorch's own device types"
    else:
        for prefix in torch_compat.LOADER_PREFIXES:
            if name.startswith(prefix):
                yield (
                    f"it begins with '{prefix}', and torch.load() takes saved locations that "
                    f"begin so for PyTorch's own device '{prefix}'"
                )
    if keyword.iskeyword(name):
        yield f"torch.{name} cannot be written, '{name}' is a Python keyword"
    if name == NONE:
        yield f"DEVHOST_DEVICE={NONE} means no device"


def hook_problems(plugin: object, manager: pluggy.PluginManager, *, device: bool) -> Iterator[str]:
    """Yield what is wrong with the functions of a hook module.

    Args:
        plugin: The hook module, or any object that carries hook implementations.
        manager: A plugin manager that knows the hook specs.
        device: True for a device plugin, False for an extension.
    """
    known = hook_names()
    found: set[str] = set()
    for attribute in dir(plugin):
        options = manager.parse_hookimpl_opts(plugin, attribute)
        hook = (options.get("specname") if options else None) or attribute
        if options is None:
            looks_like_hook = attribute.startswith(f"{PROJECT_NAME}_") and inspect.isroutine(
                inspect.getattr_static(plugin, attribute)
            )
            if not looks_like_hook:
                continue
            if hook in known:
                found.add(hook)
                yield f"{attribute}() is not marked with @devhost.hookimpl"
                continue
        if hook not in known:
            # What was probably meant is not reported as missing as well.
            near = difflib.get_close_matches(hook, known, n=1)
            found.update(near)
            hint = f", did you mean {near[0]}?" if near else f"; hooks are {', '.join(known)}"
            yield f"{hook}() is no hook of devhost{hint}"
            continue
        found.add(hook)
        if device and hook in EXTENSION_HOOKS:
            yield f"{hook}() is for extensions, a device plugin cannot implement it"
        if options is not None:
            yield from _wrapper_problems(hook, getattr(plugin, attribute), options, device)
        yield from _signature_problems(hook, getattr(plugin, attribute))
    if device:
        for hook in REQUIRED_HOOKS:
            if hook not in found:
                yield f"the required hook {hook}() is missing"
    elif not found:
        yield f"it implements no hook; hooks are {', '.join(known)}"


def hook_names() -> list[str]:
    """Return the names of all hooks, in the order of their specs."""
    return [
        name
        for name, value in vars(hookspecs).items()
        if name.startswith(f"{PROJECT_NAME}_") and inspect.isfunction(value)
    ]


def _wrapper_problems(
    hook: str, function: Any, options: Mapping[str, Any], device: bool
) -> Iterator[str]:
    if options["hookwrapper"]:
        yield f"{hook}() uses pluggy's old hookwrapper=True; use wrapper=True"
    elif options["wrapper"] and device:
        yield f"{hook}() is a wrapper; wrapping a hook is for extensions"
    elif options["wrapper"] and not inspect.isgeneratorfunction(function):
        yield f"{hook}() is a wrapper and has no `yield`"


def _signature_problems(hook: str, function: Any) -> Iterator[str]:
    accepted = list(inspect.signature(getattr(hookspecs, hook)).parameters)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin: pluggy can tell no more about it than we can
        return
    expected = f"{hook}({', '.join(accepted)})"
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            yield f"{hook}() takes {parameter}, which hooks are never given; expected {expected}"
        elif parameter.name not in accepted and parameter.default is parameter.empty:
            yield f"{hook}() has an unknown argument '{parameter.name}'; expected {expected}"
        elif parameter.kind is parameter.KEYWORD_ONLY:
            yield f"{hook}() has a keyword-only argument '{parameter.name}'; expected {expected}"


def info_problems(info: object, entry_point_name: str) -> Iterator[str]:
    """Yield what is wrong with what ``devhost_device`` returned, as told without torch."""
    if not isinstance(info, DeviceInfo):
        yield from _wrong_return("devhost_device", info, DeviceInfo)
        return
    if info.name != entry_point_name:
        yield (
            f"DeviceInfo.name is {info.name!r} but the entry point is named "
            f"{entry_point_name!r}; both are the device's name"
        )
    if info.spec_version != SPEC_VERSION:
        older = "update devhost" if info.spec_version > SPEC_VERSION else "update the plugin"
        yield (
            f"it was written for version {info.spec_version} of the hook specs and this devhost "
            f"has version {SPEC_VERSION}: {older}"
        )


def ranking_problems(
    plugin: InstalledPlugin, simulated: bool | None, priority: int | None
) -> Iterator[str]:
    """Yield what is wrong with a device's marks in the entry-point group ``devhost.ranking``.

    Selection goes by the marks, so none of it keeps the plugin from being used.

    Args:
        plugin: The device plugin.
        simulated: What its DeviceInfo says; None if it did not get as far as that.
        priority: The same.
    """
    for mark in plugin.unknown_marks:
        yield (
            f"its mark '{mark}' in the entry-point group {RANKING_GROUP} means nothing: marks are "
            "simulated and priority_N with a number N, and there is a dot between two of them"
        )
    if simulated is None or priority is None:
        return
    if (simulated, priority) != (plugin.simulated, plugin.priority):
        marks = ["simulated"] if simulated else []
        marks += [f"priority_{priority}"] if priority else []
        remedy = f'write {plugin.name} = "{".".join(marks)}" in' if marks else "leave it out of"
        yield (
            f"it is chosen as {ranking_text(plugin.simulated, plugin.priority)}, and its "
            f"devhost_device() says {ranking_text(simulated, priority)}: {remedy} the entry-point "
            f"group {RANKING_GROUP}"
        )


def probe_problems(result: object) -> Iterator[str]:
    """Yield what is wrong with what ``devhost_probe`` returned."""
    if not isinstance(result, ProbeResult):
        yield from _wrong_return("devhost_probe", result, ProbeResult)


def runtime_problems(runtime: object) -> Iterator[str]:
    """Yield what is wrong with what ``devhost_runtime`` returned."""
    if runtime is None:
        yield "devhost_runtime() returned None, expected an object with DeviceRuntime's members"
        return
    yield from _missing_members("devhost_runtime", runtime, DeviceRuntime)
    extra = getattr(runtime, "module_members", {})
    if not isinstance(extra, Mapping) or not all(_is_identifier(name) for name in extra):
        yield "the runtime's module_members must be a mapping of names (str) to objects"


def rng_problems(rng: object) -> Iterator[str]:
    """Yield what is wrong with what ``devhost_rng`` returned; None means there is no such hook."""
    if rng is not None:
        yield from _missing_members("devhost_rng", rng, DeviceRng)


def amp_problems(policy: object) -> Iterator[str]:
    """Yield what is wrong with what ``devhost_amp`` returned; None means there is no such hook."""
    import torch

    if policy is None:
        return
    if not isinstance(policy, AmpPolicy):
        yield from _wrong_return("devhost_amp", policy, AmpPolicy)
        return
    for dtype in policy.supported_dtypes:
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            yield f"AmpPolicy.supported_dtypes has {dtype!r}, which is no floating-point dtype"
    if any(policy.operators().values()):
        from devhost.amp import operator_problems  # not loaded for nothing

        yield from operator_problems(policy)


def _wrong_return(hook: str, value: object, expected: type) -> Iterator[str]:
    yield f"{hook}() returned {type(value).__name__}, expected devhost.{expected.__name__}"


def _missing_members(hook: str, value: object, protocol: type) -> Iterator[str]:
    for name in required_members(protocol):
        if not callable(getattr(value, name, None)):
            yield f"what {hook}() returned has no function {name}()"


def _is_identifier(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier()
