"""Keeps an extension's failure to the extension.

An extension's hooks run in the midst of a device's activation. Each is registered behind a guard:
what it raises is reported as the extension's, and the hook goes on as if the extension were not
installed. The device plugin's own result or exception stays what it was.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import TYPE_CHECKING, Any

from devhost import checks
from devhost.errors import PluginError, SelectionError, exception_text
from devhost.hookspecs import hookimpl
from devhost.types import DeviceInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    import pluggy

    from devhost.discovery import InstalledPlugin

_SELECT_REMEDY = "Set DEVHOST_DEVICE to choose a device without it"


class Guarded:
    """An extension's hook implementations, guarded.

    Args:
        extension: The object that carries the implementations.
        who: Whose they are.
        manager: A plugin manager that knows the hook specs.
        on_failure: Called with the first failure. From then on the extension is passed over.

    Attributes:
        plugin: A hook module for pluggy. Its functions raise SelectionError if ``devhost_select``
            fails, and nothing else of their own.
    """

    def __init__(
        self,
        extension: object,
        who: InstalledPlugin,
        manager: pluggy.PluginManager,
        on_failure: Callable[[PluginError], None],
    ) -> None:
        self._who = who
        self._on_failure = on_failure
        self._failed = False
        self.plugin = ModuleType(who.module)
        for attribute in dir(extension):
            options = manager.parse_hookimpl_opts(extension, attribute)
            if options is None:
                continue
            hook = options["specname"] or attribute
            function = getattr(extension, attribute)
            guard = self._wrapper if options["wrapper"] else self._function
            setattr(self.plugin, attribute, hookimpl(**options)(guard(hook, function)))

    def _function(self, hook: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)  # pluggy reads the arguments' names off it
        def guarded(*arguments: object) -> Any:
            if self._failed:
                return None
            try:
                return function(*arguments)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                self._fail(hook, exception_text(error), error)
                return None

        return guarded

    def _wrapper(self, hook: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def guarded(*arguments: object) -> Generator[None, Any, Any]:
            if self._failed:
                return (yield)
            wrapper = function(*arguments)
            try:
                next(wrapper)
            except KeyboardInterrupt:
                raise
            except StopIteration:
                self._fail(hook, "it ends before its `yield`")
                return (yield)
            except BaseException as error:
                self._fail(hook, exception_text(error), error)
                return (yield)
            try:
                result = yield
            except BaseException as error:
                return self._hand_over(hook, functools.partial(wrapper.throw, error), error=error)
            return self._hand_over(hook, functools.partial(wrapper.send, result), result=result)

        return guarded

    def _hand_over(
        self,
        hook: str,
        resume: Callable[[], object],
        *,
        result: Any = None,
        error: BaseException | None = None,
    ) -> Any:
        """Let a wrapper finish, and return what it returns if that is any good.

        Args:
            hook: Name of the hook.
            resume: Gives the wrapper what is inside it.
            result: What the wrapped implementations returned,
            error: or raised.
        """
        try:
            resume()
            raise RuntimeError("it has a second `yield`")
        except StopIteration as stop:
            answer = stop.value
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            if raised is not error:  # else it is passed on, as it should be
                self._fail(hook, exception_text(raised), raised)
            if error is not None:
                raise error from error.__cause__
            return result
        problems = [] if error is not None else list(_answer_problems(hook, answer, result))
        if problems:
            self._fail(hook, "; ".join(problems))
            return result
        return answer

    def _fail(self, hook: str, problem: str, cause: BaseException | None = None) -> None:
        failure = PluginError(
            self._who.describe(),
            f"failed in {hook}(): {problem}",
            f"The device does without it. Update or uninstall {self._who.distribution}",
            self._who.kind,
        )
        failure.__cause__ = cause
        if hook == "devhost_select":
            # Who decides on behalf of a site, and cannot, is not passed over: the next rule might
            # choose what the site does not want.
            who = f"{failure.kind} {failure.plugin}"
            raise SelectionError(f"{who} {failure.problem}. {_SELECT_REMEDY}") from cause
        self._failed = True
        self._on_failure(failure)


def _answer_problems(hook: str, answer: Any, result: Any) -> Iterable[str]:
    """Yield what is wrong with a wrapper's answer, unless that was wrong before."""
    if answer is result:
        return
    find = _CHECKS.get(hook)
    if hook == "devhost_device" and isinstance(result, DeviceInfo):
        find = functools.partial(checks.info_problems, entry_point_name=result.name)
    if find is not None and not list(find(result)):
        yield from find(answer)


_CHECKS: dict[str, Callable[[Any], Iterable[str]]] = {
    "devhost_probe": checks.probe_problems,
    "devhost_runtime": checks.runtime_problems,
    "devhost_rng": checks.rng_problems,
    "devhost_amp": checks.amp_problems,
}
