"""Run the examples of one page: `python docs/run_examples.py PAGE.md`.

A block marked `python` is executed, and what follows a `>>>` line is compared. In a block marked
`console` every line after `$ ` goes to a shell, and what follows is compared with what it prints on
either stream; `...` stands for anything. A block marked `sh` is for reading only: it installs
something, or takes long.

The blocks of a page share one interpreter, started for it, so that `import torch` in an example is
the import that a reader would see. Commands share one scratch folder, which holds a copy of
examples/.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sybil import Sybil
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser

from devhost.discovery import choice_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sybil.example import Example

ROOT = Path(__file__).parent.parent
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output expected of it."""
    for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = session.partition("\n")
        yield command, output.strip("\n") + "\n" if output.strip() else ""


def run_console(example: Example) -> str | None:
    """Run the commands of one block; return the first difference, or None."""
    for command, expected in commands_of(example.parsed):
        done = subprocess.run(
            command,
            shell=True,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        checker = doctest.OutputChecker()
        if not checker.check_output(expected, done.stdout, OPTIONS):
            shown = doctest.Example(command, expected)
            return f"$ {command}\n{checker.output_difference(shown, done.stdout, OPTIONS)}"
    return None


def reader_environment() -> dict[str, str]:
    """Return the environment of somebody who reads the page: nothing configured, no colours."""
    ours = ("DEVHOST_", "OPENREG_", "TORCH_DEVICE_BACKEND_AUTOLOAD")
    environment = {name: v for name, v in os.environ.items() if not name.startswith(ours)}
    return environment | {
        # Commands such as devhost and pip are those of the interpreter that runs the page.
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "PIP_NO_INDEX": "1",  # no example downloads anything
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@contextlib.contextmanager
def nothing_saved() -> Iterator[None]:
    """Take away what `devhost use` has saved in this environment, and put it back at the end."""
    file = choice_file()
    before = file.read_bytes() if file.exists() else None
    file.unlink(missing_ok=True)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        if before is not None:
            file.write_bytes(before)


def main(page: Path) -> int:
    """Run the examples of the page and return how many there are."""
    sybil = Sybil(
        parsers=[
            PythonCodeBlockParser(doctest_optionflags=OPTIONS),
            CodeBlockParser(language="console", evaluator=run_console),
        ]
    )
    environment = reader_environment()
    os.environ.clear()
    os.environ.update(environment)
    count = 0
    with nothing_saved(), tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(ROOT / "examples", Path(scratch, "examples"))
        os.chdir(scratch)
        for example in sybil.parse(page).examples():
            example.evaluate()
            count += 1
        os.chdir(ROOT)
    return count


if __name__ == "__main__":
    print(main(Path(sys.argv[1]).resolve()))
