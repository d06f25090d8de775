"""The command line itself: arguments, exit status, output."""

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
    ],
)
def test_arguments(site, arguments, status, words):
    result = site.devhost(*arguments)
    assert result.returncode == status
    assert words in (result.stdout if status == 0 else result.stderr)


def test_output_that_nobody_reads(site):
    site.add_package("minimal")
    process = subprocess.Popen(
        site.command("-m", "devhost", "list"),
        env=site.environ({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 1
    assert errors == b""


def test_terminal_that_knows_ascii_only(site):
    site.add_package("sound")
    path = site.root / "sound_hooks.py"
    path.write_text(path.read_text().replace("Sound as it stands", "caf\\u00e9"))
    result = site.devhost("list", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "caf\\xe9" in result.stdout
