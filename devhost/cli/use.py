"""`devhost use`: save, show or clear the choice of a device plugin for this environment."""

from __future__ import annotations

import json
import os
import sys
from typing import TypedDict

from devhost import saved_choice
from devhost.cli.inventory import take_inventory
from devhost.discovery import choice_file
from devhost.errors import SelectionError
from devhost.selection import VARIABLE, named, select

SCHEMA_VERSION = 1
"""Version of the JSON format; it changes when something that was there changes or goes away."""


class Report(TypedDict):
    """What `devhost use --json` prints; ``use.schema.json`` describes every field."""

    schema_version: int
    file: str
    choice: str | None
    overridden_by: str | None
    error: str | None


def run(choice: str | None, *, clear: bool, as_json: bool) -> int:
    """Run the command.

    Args:
        choice: What to save; None to save nothing.
        clear: Remove what is saved.
        as_json: Print a Report as JSON, in place of text.

    Returns:
        The exit status: 1 if what was asked for could not be done, or what is saved is of no use.
    """
    wanted = os.environ.get(VARIABLE, "").strip()
    report: Report = {
        "schema_version": SCHEMA_VERSION,
        "file": str(choice_file()),
        "choice": None,
        "overridden_by": f"{VARIABLE}={wanted}" if wanted else None,
        "error": None,
    }
    done = ""
    try:
        done = _clear() if clear else _show() if choice is None else _save(choice)
    except SelectionError as error:
        report["error"] = str(error)
    try:
        report["choice"] = saved_choice.read()
    except SelectionError as error:  # whatever the command was for, this is wrong
        report["error"] = report["error"] or str(error)

    if as_json:
        print(json.dumps(report, indent=2))
    elif report["error"] is not None:
        print(f"devhost use: {report['error']}", file=sys.stderr)
    else:
        print(done)
        if report["choice"] is not None and wanted:
            print(f"{VARIABLE}={wanted} is set, and overrides it")
    return 0 if report["error"] is None else 1


def _save(choice: str) -> str:
    names = ",".join(name.strip() for name in choice.split(",") if name.strip())
    # Of a list every name: unlike a variable, this choice is for one environment.
    named(names, f"`devhost use {names}`", take_inventory().devices, every=True)
    saved_choice.save(names)
    return f"saved '{names}' in {choice_file()}"


def _clear() -> str:
    return f"{'removed' if saved_choice.clear() else 'nothing is saved in'} {choice_file()}"


def _show() -> str:
    saved = saved_choice.read()
    if saved is None:
        return f"nothing is saved in {choice_file()}"
    # Without any variable the saved choice decides: it is refused here as it is on import.
    select(take_inventory().devices, {})
    return f"'{saved}' is saved in {choice_file()}"
