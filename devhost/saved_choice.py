"""The choice that `devhost use` saves: one line of text, in a file of the environment.

The file belongs to the environment (``sys.prefix``) and not to the user, because what is installed
does too: a choice made for one environment would be wrong in the next. Its content is what
``DEVHOST_DEVICE`` could be: a name, names in order of preference, or ``none``.
"""

from __future__ import annotations

import contextlib
import os
import stat

from devhost.discovery import choice_file
from devhost.errors import SelectionError, exception_text

REMEDY = "Choose anew with `devhost use NAME`, or remove the choice with `devhost use --clear`"
_MAX_BYTES = 4096


def read() -> str | None:
    """Return the saved choice, or None if there is none, which is the normal case.

    Raises:
        SelectionError: There is a file, and it cannot be read or is no single line of text.
    """
    file = choice_file()
    try:
        # Reading a named pipe would wait for somebody to write to it, and `import torch` with it.
        if not stat.S_ISREG(file.stat().st_mode):
            raise SelectionError(f"the choice saved in {file} is no regular file. {REMEDY}")
        with file.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SelectionError(
            f"the choice saved in {file} cannot be read: {exception_text(error)}. {REMEDY}"
        ) from error
    try:
        choice = content.decode().strip()
    except UnicodeDecodeError as error:
        raise SelectionError(
            f"the choice saved in {file} is not UTF-8 text: {exception_text(error)}. {REMEDY}"
        ) from error
    if not choice or not choice.isprintable() or len(content) > _MAX_BYTES:
        raise SelectionError(
            f"the choice saved in {file} is not one line with the name of a device plugin. {REMEDY}"
        )
    return choice


def save(choice: str) -> None:
    """Save ``choice``, which may be what ``DEVHOST_DEVICE`` may be.

    Raises:
        SelectionError: The file cannot be written; what was saved before is unchanged.
    """
    file = choice_file()
    # A program that starts in this moment must find the old choice or the new one, not a part. And
    # not a file of tempfile's, which nobody but its owner could read.
    new = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            new.write_text(f"{choice}\n", encoding="utf-8")
            new.replace(file)
        finally:
            with contextlib.suppress(FileNotFoundError):
                new.unlink()
    except OSError as error:
        raise SelectionError(
            f"the choice cannot be saved in {file}: {exception_text(error)}. Run the command as "
            "the owner of the environment, or set DEVHOST_DEVICE instead"
        ) from error


def clear() -> bool:
    """Remove the saved choice, readable or not.

    Returns:
        Whether there was one.

    Raises:
        SelectionError: The file cannot be removed.
    """
    file = choice_file()
    try:
        file.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise SelectionError(
            f"{file} cannot be removed: {exception_text(error)}. Remove it as the owner of the "
            "environment"
        ) from error
    return True
