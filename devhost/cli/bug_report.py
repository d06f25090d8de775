"""The end of `devhost doctor`: a block to paste into a bug report, without personal paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devhost.cli.redaction import redacted

if TYPE_CHECKING:
    from devhost.cli.doctor import Report


def bug_report(report: Report) -> str:
    """Return versions, platform and findings as Markdown, ready to be shown to strangers."""
    lines = [
        f"devhost {report['devhost']}",
        f"Python {report['python']}",
        f"torch {report['torch'] or 'none, or broken'}",
        f"platform {report['platform']}",
        "",
    ]
    for finding in report["findings"]:
        about = f"{finding['check']} {finding['subject']}".rstrip()
        lines.append(f"{finding['severity']}: {about}: {finding['cause']}")
        lines += [f"    {line}" for line in finding["traceback"].splitlines()]
    # A fence longer than any inside, so that the block stays one.
    text = redacted("\n".join(lines))
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"
