"""`devhost use`: the choice for an environment."""

import json
from pathlib import Path

import jsonschema
import pytest

import devhost.cli

SCHEMA = json.loads((Path(devhost.cli.__file__).parent / "use.schema.json").read_text())

# root may write anywhere, unless it gives up the privilege for good.
UNPRIVILEGED = """
import ctypes, os, sys
if os.geteuid() == 0:
    PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
    assert ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) == 0
os.execv(sys.executable, [sys.executable, "-m", "devhost", "use", "npu"])
"""


@pytest.fixture
def two(site):
    """The devices npu and zpu, which are equal."""
    return site.add_marked("npu").add_marked("zpu")


def use(site, *arguments, status=0, **variables):
    """Run `devhost use --json` and the same without it; return the former's object."""
    document = site.devhost("use", "--json", *arguments, **variables)
    assert (document.returncode, document.stderr) == (status, "")
    report = json.loads(document.stdout)
    jsonschema.validate(report, SCHEMA)
    assert report["schema_version"] == 1
    assert report["file"] == str(site.choice_file)
    return report


def text(site, *arguments, **variables):
    """Run `devhost use` and return its exit status and what it prints on either stream."""
    result = site.devhost("use", *arguments, **variables)
    assert "" in (result.stdout, result.stderr)
    return result.returncode, result.stdout + result.stderr


def test_save_show_and_clear(two):
    file = two.choice_file
    assert text(two) == (0, f"nothing is saved in {file}\n")
    assert text(two, "zpu") == (0, f"saved 'zpu' in {file}\n")
    assert file.read_text() == "zpu\n"
    assert text(two) == (0, f"'zpu' is saved in {file}\n")
    result = two.python("import torch, devhost; print(torch.zpu.device_count(), devhost.status())")
    assert result.stderr == ""
    assert result.stdout.startswith("1 device: zpu\n")
    assert f"choice: the choice 'zpu' saved by `devhost use` in {file}\n" in result.stdout
    assert text(two, "--clear") == (0, f"removed {file}\n")
    assert not file.exists()
    assert text(two, "--clear") == (0, f"nothing is saved in {file}\n")


def test_json(two):
    nothing = {"choice": None, "overridden_by": None, "error": None}
    assert use(two).items() >= nothing.items()
    assert use(two, "zpu")["choice"] == "zpu"
    assert use(two)["choice"] == "zpu"
    report = use(two, DEVHOST_DEVICE="npu")
    assert (report["choice"], report["overridden_by"]) == ("zpu", "DEVHOST_DEVICE=npu")
    assert use(two, "--clear").items() >= nothing.items()


@pytest.mark.parametrize(
    ("choice", "content"),
    [
        ("ZPU", "ZPU"),
        ("npu-dist", "npu-dist"),
        (" zpu , npu,", "zpu,npu"),
        ("zpu,\nnpu", "zpu,npu"),
        ("none", "none"),
    ],
)
def test_what_can_be_saved(two, choice, content):
    assert use(two, choice)["choice"] == content
    assert two.choice_file.read_text() == f"{content}\n"


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        (
            "zpuu",
            "no device plugin 'zpuu' is installed; installed: npu (npu-dist), zpu (zpu-dist). "
            "Did you mean 'zpu'?",
        ),
        ("npu,zpuu", "no device plugin 'zpuu' is installed; "),
        ("npu,none", "'none' cannot be combined with other names"),
        (",", "names no device plugin; installed: npu (npu-dist), zpu (zpu-dist)"),
        ("", "names no device plugin"),
    ],
)
def test_what_cannot_be_saved_changes_nothing(two, choice, problem):
    report = use(two, choice, status=1)
    assert problem in report["error"]
    assert report["choice"] is None
    assert not two.choice_file.parent.exists()
    two.save_choice("npu\n")
    status, words = text(two, choice)
    assert status == 1
    assert words.startswith("devhost use: `devhost use ")
    assert problem in words
    assert len(words.splitlines()) == 1
    assert two.choice_file.read_text() == "npu\n"
    assert use(two, choice, status=1)["choice"] == "npu"


def test_a_name_that_fits_two(two):
    two.add_device("npu", "npu_hooks", distribution="other")
    status, words = text(two, "npu")
    assert status == 1
    assert "'npu' is ambiguous, it fits npu (npu-dist), npu (other). Give the distribution" in words


def test_the_variable_overrides_it(two):
    _, words = text(two, "zpu", DEVHOST_DEVICE="npu")
    assert words.splitlines()[1:] == ["DEVHOST_DEVICE=npu is set, and overrides it"]
    listed = two.devhost("list", DEVHOST_DEVICE="npu").stdout
    assert (
        "`import torch` activates device 'npu': DEVHOST_DEVICE=npu; this overrides the choice "
        f"saved in {two.choice_file}."
    ) in listed.splitlines()


@pytest.mark.parametrize(
    ("saved", "choice", "problem"),
    [
        ("gone", "gone", "no device plugin 'gone' is installed; "),
        (b"caf\xe9", None, "is not UTF-8 text"),
        ("npu\nzpu", None, "is not one line"),
    ],
)
def test_a_saved_choice_that_is_of_no_use(two, saved, choice, problem):
    two.save_choice(saved)
    report = use(two, status=1)
    assert report["choice"] == choice
    assert problem in report["error"]
    assert str(two.choice_file) in report["error"]
    assert report["error"].endswith("or remove the choice with `devhost use --clear`")
    # Either remedy that it names works.
    assert use(two, "npu")["choice"] == "npu"
    two.save_choice(saved)
    assert use(two, "--clear")["choice"] is None


def test_a_folder_that_is_not_writable(two):
    two.choice_file.parent.mkdir(parents=True)
    two.choice_file.parent.chmod(0o555)
    result = two.python(UNPRIVILEGED)
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert f"the choice cannot be saved in {two.choice_file}: PermissionError: " in line
    assert line.endswith(
        "Run the command as the owner of the environment, or set DEVHOST_DEVICE instead"
    )
    assert list(two.choice_file.parent.iterdir()) == []


def test_a_name_and_clear_together(two):
    result = two.devhost("use", "npu", "--clear")
    assert result.returncode == 2
    assert "argument --clear: not allowed with argument NAME" in result.stderr


def test_torch_is_not_imported(two):
    (two.root / "torch.py").write_text("raise SystemError('torch was imported')")
    assert use(two, "npu")["choice"] == "npu"
