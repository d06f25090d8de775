"""The command line itself: arguments, exit status, output."""

import contextlib
import json
import os
import pty
import re
import shlex
import subprocess

import pytest

import devhost


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--version"], 0, f"devhost {devhost.__version__}"),
        (["--help"], 0, "list"),
        (["list", "--help"], 0, "--json"),
        (["use", "--help"], 0, "--clear"),
        ([], 2, "the following arguments are required: COMMAND"),
        (["lst"], 2, "invalid choice: 'lst'"),
        (["list", "--jsn"], 2, "unrecognized arguments: --jsn"),
        (["list", "--timeout", "soon"], 2, "'soon' is not a positive number of seconds"),
        (["list", "--timeout", "-1"], 2, "'-1' is not a positive number of seconds"),
        (["list", "--timeout", "inf"], 2, "'inf' is not a positive number of seconds"),
        (["doctor", "--help"], 0, "give up on a plugin after this time (default: 60)"),
        (["doctor", "openreg"], 2, "unrecognized arguments: openreg"),
        (["doctor", "--timeout", "0"], 2, "'0' is not a positive number of seconds"),
        (["info", "--help"], 0, "name of a device or of a distribution"),
        (["info"], 2, "the following arguments are required: NAME"),
    ],
)
def test_arguments(site, arguments, status, words):
    result = site.devhost(*arguments)
    assert result.returncode == status
    assert words in (result.stdout if status == 0 else result.stderr)


COMMANDS = [["list"], ["doctor", "--json"], ["info", "minimal"]]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_output_that_nobody_reads(site, arguments):
    site.add_package("minimal")
    process = subprocess.Popen(
        site.command("-m", "devhost", *arguments),
        env=site.environ({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 1
    assert errors == b""


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_output_that_is_closed(site, arguments):
    site.add_package("minimal")
    command = shlex.join(site.command("-m", "devhost", *arguments))
    closed = subprocess.run(
        ["sh", "-c", f"{command} >&-"],
        env=site.environ({}),
        cwd=site.cwd(),
        stderr=subprocess.PIPE,
        timeout=120,
    )
    assert (closed.returncode, closed.stderr) == (1, b"")


def test_progress_is_shown_on_a_terminal_only(site):
    terminal, stderr = os.openpty()
    process = subprocess.Popen(
        site.command("-m", "devhost", "doctor", "--json"),
        env=site.environ({"TERM": "xterm"}),
        cwd=site.cwd(),
        stdout=subprocess.PIPE,
        stderr=stderr,
    )
    os.close(stderr)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal says that it is closed at the other end
        while part := os.read(terminal, 4096):
            shown += part
    os.close(terminal)
    document = json.loads(process.communicate(timeout=120)[0])
    assert document["severity"] == "ok"
    assert b"checking" in shown
    assert b"2/2" in shown
    assert b"\x1b[?25h" in shown.rpartition(b"2/2")[2]  # the cursor is there again


def test_terminal_that_knows_ascii_only(site):
    site.add_package("sound")
    path = site.root / "sound_hooks.py"
    path.write_text(path.read_text().replace("Sound as it stands", "caf\\u00e9"))
    result = site.devhost("list", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "caf\\xe9" in result.stdout


COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9]m")


def on_a_terminal(site, **variables):
    """What `devhost list` writes on a terminal."""
    master, slave = pty.openpty()
    terminal = {"TERM": "xterm-256color", "COLUMNS": "100", **variables}
    environment = site.environ(terminal)
    for name in {"NO_COLOR", "FORCE_COLOR"} - variables.keys():
        environment.pop(name, None)
    with subprocess.Popen(
        site.command("-m", "devhost", "list"),
        env=environment,
        cwd=site.cwd(),
        stdin=slave,
        stdout=slave,
        stderr=slave,
    ) as process:
        os.close(slave)
        output = b""
        with contextlib.suppress(OSError):  # how Linux says that the last user has gone
            while chunk := os.read(master, 4096):
                output += chunk
    os.close(master)
    assert process.returncode == 0
    return output.decode().replace("\r\n", "\n")


def test_terminal_has_colours_and_a_width(site):
    site.add_package("minimal")
    wide, narrow = on_a_terminal(site), on_a_terminal(site, COLUMNS="80")
    assert COLOUR.search(wide)
    for output, columns in ((wide, 100), (narrow, 80)):
        table = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines() if "│" in line]
        assert table
        assert max(map(len, table)) <= columns
        assert "minimal" in table[0]
        assert "available (active)" in table[0]


def test_no_color_has_none(site):
    site.add_package("minimal")
    output = on_a_terminal(site, NO_COLOR="1")
    assert "available (active)" in output
    assert not COLOUR.search(output)


def test_pipe_has_neither_unless_colours_are_forced(site):
    site.add_package("minimal")
    long = (
        "A device with a description that is longer than eighty columns, and is never folded at all"
    )
    path = site.root / "minimal_plugin.py"
    path.write_text(path.read_text().replace("A minimal device", long))
    plain = site.devhost("list", COLUMNS="80").stdout
    assert long in plain
    assert "\x1b" not in plain
    forced = site.devhost("list", FORCE_COLOR="1", TERM="xterm-256color").stdout
    assert long in forced
    assert COLOUR.search(forced)
