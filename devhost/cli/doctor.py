"""`devhost doctor`: what is wrong here, why, and what to do about it.

Nothing here imports torch or a plugin: they are tried in child processes, which may crash or hang.
``trials`` is what runs there, ``verdicts`` says what the outcomes mean.
"""

from __future__ import annotations

import itertools
import os
import platform
from typing import TYPE_CHECKING, TypedDict

import devhost
from devhost.blocking import block
from devhost.cli import verdicts
from devhost.cli.alone import identity
from devhost.cli.bug_report import bug_report
from devhost.cli.configuration import configuration_findings
from devhost.cli.conflicts import conflict_findings
from devhost.cli.environment import devhost_findings, python_findings, supported_torch
from devhost.cli.findings import worst
from devhost.cli.inventory import take_inventory
from devhost.cli.pool import Job, run_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from devhost.cli.findings import Finding, Severity
    from devhost.cli.inventory import Inventory
    from devhost.cli.pool import Outcome

    Progress = Callable[[int, int], None]
    """Called with the number of children that have ended, and of all that are known so far."""

SCHEMA_VERSION = 1
"""Version of the JSON format; it changes when something that was there changes or goes away."""


class Report(TypedDict):
    """Everything that `devhost doctor` says. ``doctor.schema.json`` describes every field."""

    schema_version: int
    devhost: str
    python: str
    platform: str
    torch: str | None
    severity: Severity
    findings: list[Finding]
    bug_report: str


def make_report(timeout: float, progress: Progress) -> Report:
    """Check everything.

    Args:
        timeout: How many seconds each child process may take.
        progress: Told how many child processes have ended.
    """
    inventory = take_inventory()
    findings = [
        *python_findings(),
        *devhost_findings(),
        *configuration_findings(os.environ),
        *conflict_findings(inventory),
    ]
    blocked = block(inventory.devices, inventory.extensions, os.environ)
    findings += verdicts.on_blocked(blocked)
    inventory = inventory.without(blocked.plugins)
    # torch first: where it does not work no plugin does, and saying so once is enough.
    progress(0, 1)
    (outcome,) = run_all([Job({"trial": "torch"})], timeout)
    findings += verdicts.on_torch(outcome, supported_torch())
    torch_version = outcome.result.get("version") if outcome.result is not None else None
    if torch_version is not None:
        findings += _try_everything(inventory, timeout, progress)
    else:
        findings += _try_without_torch(inventory, timeout, progress)
    report: Report = {
        "schema_version": SCHEMA_VERSION,
        "devhost": devhost.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "torch": torch_version,
        "severity": worst(findings),
        "findings": findings,
        "bug_report": "",
    }
    report["bug_report"] = bug_report(report)
    return report


def _try_everything(inventory: Inventory, timeout: float, progress: Progress) -> list[Finding]:
    jobs = [
        *(Job({"trial": "hook module", **identity(plugin)}) for plugin in inventory.devices),
        *(Job({"trial": "plugin", **identity(plugin)}) for plugin in inventory.devices),
        *(Job({"trial": "extension", **identity(plugin)}) for plugin in inventory.extensions),
        *(Job({"trial": "backend", **identity(plugin)}) for plugin in inventory.foreign_backends),
        # With the user's own settings, as a program does it.
        Job({"trial": "import"}, environ={}),
    ]
    outcomes = iter(_run(jobs, timeout, progress))
    findings: list[Finding] = []
    inspected = list(itertools.islice(outcomes, len(inventory.devices)))
    # The iterator comes last, so that nothing of it is lost where the others end.
    for plugin, before, outcome in zip(inventory.devices, inspected, outcomes, strict=False):
        findings += verdicts.on_plugin(plugin, before, outcome)
    for plugin, outcome in zip(inventory.extensions, outcomes, strict=False):
        findings += verdicts.on_extension(plugin, outcome)
    for plugin, outcome in zip(inventory.foreign_backends, outcomes, strict=False):
        findings += verdicts.on_backend(plugin, outcome, beside_plugins=bool(inventory.devices))
    return [*findings, *verdicts.on_import(next(outcomes))]


def _try_without_torch(inventory: Inventory, timeout: float, progress: Progress) -> list[Finding]:
    jobs = [
        *(Job({"trial": "hook module", **identity(plugin)}) for plugin in inventory.devices),
        *(Job({"trial": "extension", **identity(plugin)}) for plugin in inventory.extensions),
    ]
    outcomes = iter(_run(jobs, timeout, progress))
    findings: list[Finding] = []
    for plugin, outcome in zip(inventory.devices, outcomes, strict=False):
        findings += verdicts.on_plugin_without_torch(plugin, outcome)
    for plugin, outcome in zip(inventory.extensions, outcomes, strict=False):
        findings += verdicts.on_extension(plugin, outcome)
    return findings


def _run(jobs: list[Job], timeout: float, progress: Progress) -> list[Outcome]:
    # The one of torch has come before.
    return run_all(jobs, timeout, lambda ended: progress(1 + ended, 1 + len(jobs)))
