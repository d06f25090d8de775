"""The directive `devhost-faults`: what happens when something is wrong with a plugin.

It shows docs/fault_messages.json, which the tests of the fault table write, and compare with what
they see (tests/test_faults.py). No message on the page is written by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docutils import nodes
    from sphinx.application import Sphinx

    Fault = dict[str, Any]

MESSAGES = Path(__file__).parent.parent / "fault_messages.json"
LONGEST = 500  # characters of a message that are shown


class FaultsDirective(SphinxDirective):
    """Write the table and the messages of the group that is the directive's argument.

    Use it inside `{eval-rst}`: what it writes is reST.
    """

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(MESSAGES))
        group = self.arguments[0]
        every = json.loads(MESSAGES.read_text())["faults"].values()
        faults = [fault for fault in every if fault["group"] == group]
        if not faults:
            raise self.error(f"there is no group of faults {group!r}")
        return self.parse_text_to_nodes("\n".join([*table(faults), *messages(faults)]))


def table(faults: list[Fault]) -> Iterator[str]:
    """Yield a table with a row per fault."""
    columns = {
        "What happens when ...": lambda fault: fault["title"],
        "``import torch``": what_import_does,
        "first use": what_first_use_does,
        "``devhost list``": lambda fault: fault["list"][0],
    }
    if all("doctor" in fault for fault in faults):
        columns["``devhost doctor``"] = lambda fault: fault["doctor"][0]
    yield from (".. list-table::", "   :header-rows: 1", "   :width: 100%", "")
    for row in (columns, *([cell(fault) for cell in columns.values()] for fault in faults)):
        for i, text in enumerate(row):
            yield f"   {' ' if i else '*'} - {text}"
    yield ""


def what_import_does(fault: Fault) -> str:
    """Say what becomes of a program that imports torch."""
    if "ending" in fault:
        return fault["ending"]
    logged = {0: "", 1: ", logs one line"}.get(len(fault["log"]), ", logs two lines")
    return f"works{logged}"


def what_first_use_does(fault: Fault) -> str:
    """Say what becomes of ``torch.ones(1, device="faulty")``."""
    outcome = fault.get("first_use", "")
    if not outcome:
        return "never comes"
    if "at start of device string" in outcome:
        return "unknown device"
    return "works" if outcome == "1.0" else f"``{outcome.partition(':')[0]}``"


def messages(faults: list[Fault]) -> Iterator[str]:
    """Yield what is said in each case, but what one says in the words of another."""
    for fault in faults:
        said = [*fault.get("log", ()), *fault.get("error", ())]
        for command in ("list", "doctor"):
            verdict, reason = fault.get(command, ("", ""))
            if verdict != "ok" and reason and not any(reason in line for line in said):
                said.append(f"devhost {command}: {reason}")
        if said:
            yield from (f"When {fault['title']}:", "", ".. code-block:: text", "")
            for text in said:
                yield f"   {text[:LONGEST]}..." if len(text) > LONGEST else f"   {text}"
            yield ""


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("devhost-faults", FaultsDirective)
    return {"parallel_read_safe": True}
