"""What `devhost doctor` finds: one fact about one thing, how bad it is, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

from devhost.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

Severity = Literal["ok", "warning", "error"]

SEVERITIES: tuple[Severity, ...] = ("ok", "warning", "error")
"""From good to bad."""


class Finding(TypedDict):
    """One finding. The JSON Schema in ``doctor.schema.json`` describes every field."""

    check: str
    subject: str
    severity: Severity
    cause: str
    remedy: str
    traceback: str
    seconds: float | None


def ok(check: str, subject: str, cause: str, seconds: float | None = None) -> Finding:
    """Return that something is as it should be."""
    return _finding(check, subject, "ok", cause, "", "", seconds)


def warning(
    check: str, subject: str, cause: str, remedy: str, seconds: float | None = None
) -> Finding:
    """Return that something works and will surprise somebody."""
    return _finding(check, subject, "warning", cause, remedy, "", seconds)


def error(
    check: str,
    subject: str,
    cause: str,
    remedy: str,
    traceback: str = "",
    seconds: float | None = None,
) -> Finding:
    """Return that something does not work."""
    return _finding(check, subject, "error", cause, remedy, traceback, seconds)


def worst(findings: Iterable[Finding]) -> Severity:
    """Return the severity of the worst finding; "ok" if there is none."""
    return max((f["severity"] for f in findings), key=SEVERITIES.index, default="ok")


def _finding(
    check: str,
    subject: str,
    severity: Severity,
    cause: str,
    remedy: str,
    traceback: str,
    seconds: float | None,
) -> Finding:
    return {
        "check": check,
        "subject": subject,
        "severity": severity,
        "cause": one_line(cause),
        "remedy": one_line(remedy),
        "traceback": traceback,
        "seconds": None if seconds is None else round(seconds, 3),
    }
