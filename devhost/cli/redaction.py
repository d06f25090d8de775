"""Takes out of a text what it says about the person who wants to show it to others."""

from __future__ import annotations

import contextlib
import getpass
import os
import platform
import re
import sys
from pathlib import Path

_IMPERSONAL = ("/usr/", "/lib/", "/lib64/", "/bin/", "/dev/", "/proc/", "/sys/", "/etc/", "/opt/")
"""Folders that look alike on many machines, and tell something."""

# A path ends where one is quoted or listed; a file name is kept, of folders nothing is.
_PATH = re.compile(r"""(?<![\w.~>/-])/(?:[^\s/:;,'"()<>]+/)*[^\s/:;,'"()<>]*""")


def redacted(text: str) -> str:
    """Return ``text`` with placeholders for paths and names of this person and machine.

    ``<prefix>`` is the environment, ``<base>`` the Python it was made from, ``<cwd>`` the current
    folder, ``~`` the home folder; of other paths, unless they are the system's, the last component
    stays, or what comes from ``site-packages`` on. ``<user>`` and ``<host>`` are the names of the
    user and of the machine.
    """
    for path, placeholder in _places():
        # Not in the middle of a longer name: /home/al is no part of /home/alice.
        text = re.sub(re.escape(path) + r"(?![\w.-])", placeholder, text)
    text = _PATH.sub(_without_folders, text)
    for name, placeholder in _names():
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", placeholder, text)
    return text


def _places() -> list[tuple[str, str]]:
    places = {}
    for find, placeholder in (
        (Path.cwd, "<cwd>"),
        (Path.home, "~"),
        (lambda: Path(sys.base_prefix), "<base>"),
        (lambda: Path(sys.prefix), "<prefix>"),
    ):
        # The folder may be gone, and a user may have no home.
        with contextlib.suppress(OSError, RuntimeError):
            folder = find()
            for path in (str(folder), os.path.realpath(folder)):
                if path.count(os.sep) >= 1 and len(path) > 1 and not _is_system(path):
                    places[path] = placeholder
    # The longest first: an environment is often inside the home folder.
    return sorted(places.items(), key=lambda place: -len(place[0]))


def _names() -> list[tuple[str, str]]:
    names = [(platform.node(), "<host>")]
    with contextlib.suppress(OSError, KeyError, ImportError):  # a user that has no name
        names.append((getpass.getuser(), "<user>"))
    # Names that say nothing about anybody, and are words of reports.
    return [(name, mark) for name, mark in names if name not in ("", "root", "localhost")]


def _without_folders(match: re.Match[str]) -> str:
    path = match[0]
    if path == "/" or _is_system(path):
        return path
    # Where something lies in an installation tells nothing of whose it is.
    installed = re.search(r"(?:site|dist)-packages/", path)
    start = installed.start() if installed else path.rstrip("/").rindex("/") + 1
    return f"<...>/{path[start:].rstrip('/')}"


def _is_system(path: str) -> bool:
    return f"{path}/".startswith(_IMPERSONAL)
