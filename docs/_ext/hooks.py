"""The directive `devhost-hooks`: the hook reference, generated from devhost/hookspecs.py.

It writes a table of all hooks, then each hook's signature and docstring in the order of the file. A
new hook appears by itself, and nothing about a hook is written down twice.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, NamedTuple

from sphinx.util.docutils import SphinxDirective

from devhost import hookspecs

if TYPE_CHECKING:
    from collections.abc import Callable

    from docutils import nodes
    from sphinx.application import Sphinx


class Hook(NamedTuple):
    """One hook as the reference shows it."""

    name: str
    function: Callable[..., object]

    @property
    def returns(self) -> str:
        """The return annotation, as it is written."""
        return str(inspect.signature(self.function).return_annotation)

    @property
    def need(self) -> str:
        """Whether a device plugin has to implement the hook, or only an extension may."""
        if self.name in hookspecs.REQUIRED_HOOKS:
            return "required"
        return "extensions only" if self.name in hookspecs.EXTENSION_HOOKS else "optional"

    @property
    def summary(self) -> str:
        """The first sentence of the docstring."""
        return (inspect.getdoc(self.function) or "").partition(".")[0] + "."


def all_hooks() -> list[Hook]:
    """Return every hook spec in the order of devhost/hookspecs.py."""
    functions = inspect.getmembers(hookspecs, inspect.isfunction)
    hooks = [Hook(name, function) for name, function in functions if name.startswith("devhost_")]
    return sorted(hooks, key=lambda hook: hook.function.__code__.co_firstlineno)


class HooksDirective(SphinxDirective):
    """Write the whole reference. Use it inside `{eval-rst}`: what it writes is reST."""

    def run(self) -> list[nodes.Node]:
        lines = [
            ".. list-table::",
            "   :header-rows: 1",
            "",
            "   * - hook",
            "     - returns",
            "     -",
            "     - purpose",
        ]
        for hook in all_hooks():
            lines += [
                f"   * - :func:`{hook.name} <devhost.hookspecs.{hook.name}>`",
                f"     - ``{hook.returns}``",
                f"     - {hook.need}",
                f"     - {hook.summary}",
            ]
        for hook in all_hooks():
            lines += ["", f".. autofunction:: devhost.hookspecs.{hook.name}"]
        self.env.note_dependency(inspect.getfile(hookspecs))
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("devhost-hooks", HooksDirective)
    return {"parallel_read_safe": True}
