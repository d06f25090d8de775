"""Draws what commands look like on a terminal: `make screenshots`, or `python docs/screenshots.py`.

Each command runs in a terminal of its own, and what it writes there becomes an SVG in docs/_static.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

STATIC = Path(__file__).parent / "_static"
WIDTH = 100
# Name of the file -> command.
SCREENSHOTS = {
    "devhost-list": ["devhost", "list"],
}


def terminal_output(command: list[str]) -> str:
    """Run a command of this environment in a terminal, and return what it writes, colours and all.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    ours = ("DEVHOST_", "OPENREG_", "TORCH_", "NO_COLOR", "FORCE_COLOR", "COLORTERM")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    ours_first = os.pathsep.join((str(Path(sys.executable).parent), kept["PATH"]))
    environment = kept | {"PATH": ours_first, "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
    master, slave = pty.openpty()
    with subprocess.Popen(
        command, env=environment, cwd=STATIC, stdin=slave, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        output = b""
        while chunk := _read(master):
            output += chunk
    os.close(master)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    return output.decode().replace("\r\n", "\n")


def _read(master: int) -> bytes:
    try:
        return os.read(master, 4096)
    except OSError:  # how Linux says that the terminal's last user has gone
        return b""


def draw(name: str) -> str:
    """Return the SVG of a screenshot."""
    command = SCREENSHOTS[name]
    # Written into memory: the console's own output is not wanted.
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text(f"$ {' '.join(command)}"))
        console.print(Text.from_ansi(terminal_output(command).rstrip()))
    svg = console.export_svg(title=" ".join(command), unique_id=name)
    # Fonts from the network: a page of documentation fetches nothing, and any monospace does.
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def main() -> None:
    """Draw all of them."""
    for name in SCREENSHOTS:
        (STATIC / f"{name}.svg").write_text(draw(name))


if __name__ == "__main__":
    main()
