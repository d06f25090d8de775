"""`DEVHOST_DISABLE` keeps plugins and extensions out, before they are imported."""

import json

import pytest

EXTENSION = """
from devhost import hookimpl

@hookimpl
def devhost_activated(status):
    print("observed", status.device)

@hookimpl
def devhost_select(candidates):
    print("candidates", [c.name for c in candidates])
"""

IMPORT = """
import sys, torch, devhost
status = devhost.status()
print(status.device, status.choice)
for entry in (*status.plugins, *status.extensions):
    print(entry.name, entry.state, entry.reason)
print([m for m in ("npu_hooks", "zpu_hooks", "watch_ext") if m in sys.modules])
"""


@pytest.fixture
def two(site):
    """The devices npu and zpu, which are equal, and the extension watch."""
    site.add("watch-ext", "[devhost.extensions]\nwatch = watch_ext\n", {"watch_ext.py": EXTENSION})
    return site.add_marked("npu").add_marked("zpu")


@pytest.mark.parametrize(
    ("value", "names"),
    [("zpu", "zpu"), ("ZPU-dist", "ZPU-dist"), (" nqu, zpu_dist ,", "nqu,zpu_dist")],
)
def test_a_device_is_kept_out(two, value, names):
    result = two.python(IMPORT, DEVHOST_DISABLE=value)
    source = f"DEVHOST_DISABLE={names}"
    assert result.stdout.splitlines() == [
        "candidates ['npu']",
        "observed npu",
        f"npu it is the only device plugin installed that {source} does not keep out",
        "npu activated ",
        f"zpu disabled {source} keeps it out",
        "watch activated ",
        "['npu_hooks', 'watch_ext']",
    ]
    unknown = f"devhost: {source}: nothing is installed that is called 'nqu'. Did you mean 'npu'?\n"
    assert result.stderr == (unknown if "nqu" in names else "")


def test_an_extension_is_kept_out(two):
    result = two.python(IMPORT, DEVHOST_DISABLE="watch,zpu")
    assert result.stdout.splitlines()[1:] == [
        "npu activated ",
        "zpu disabled DEVHOST_DISABLE=watch,zpu keeps it out",
        "watch disabled DEVHOST_DISABLE=watch,zpu keeps it out",
        "['npu_hooks']",
    ]
    assert result.stderr == ""
    document = json.loads(two.devhost("list", "--json", DEVHOST_DISABLE="watch,zpu").stdout)
    assert document["selection"]["notes"] == [
        "extension 'watch' (watch-ext 1.0) is disabled: DEVHOST_DISABLE=watch,zpu keeps it out"
    ]
    assert document["selection"]["device"] == "npu"


def test_everything_is_kept_out(two):
    result = two.python(IMPORT, DEVHOST_DISABLE="npu,zpu")
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "None DEVHOST_DISABLE=npu,zpu keeps all device plugins out",
        "npu disabled DEVHOST_DISABLE=npu,zpu keeps it out",
        "zpu disabled DEVHOST_DISABLE=npu,zpu keeps it out",
        "watch discovered ",
        "[]",
    ]


def test_a_disabled_device_is_named(two):
    variables = {"DEVHOST_DEVICE": "zpu", "DEVHOST_DISABLE": "zpu"}
    result = two.python(IMPORT, **variables)
    line = "DEVHOST_DEVICE=zpu: 'zpu' is disabled by DEVHOST_DISABLE=zpu"
    assert result.stderr == f"devhost: {line}\n"
    assert result.stdout.splitlines()[:3] == [
        f"None {line}",
        f"npu not selected {line}",
        "zpu disabled DEVHOST_DISABLE=zpu keeps it out",
    ]
    strict = two.python("import torch", DEVHOST_STRICT="1", **variables)
    assert strict.returncode == 1
    assert f"SelectionError: {line}" in strict.stderr


def test_a_name_that_fits_nothing_is_an_error_where_that_is_asked_for(two):
    result = two.python("import torch", DEVHOST_STRICT="1", DEVHOST_DISABLE="nqu")
    assert result.returncode == 1
    assert (
        "ConfigurationError: DEVHOST_DISABLE=nqu: nothing is installed that is called 'nqu'. "
        "Did you mean 'npu'?"
    ) in result.stderr


def test_a_name_that_fits_nothing_where_nothing_is_installed(site):
    result = site.python("import torch, devhost; devhost.load()", DEVHOST_DISABLE="npu")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_list_does_not_run_what_is_kept_out(two):
    (two.root / "zpu_hooks.py").write_text("open('ran', 'w').close()")
    result = two.devhost("list", DEVHOST_DISABLE="zpu,zpv")
    assert (result.returncode, result.stderr) == (0, "")
    assert not (two.root / "ran").exists()
    lines = result.stdout.splitlines()
    assert [line.split("│")[4].strip() for line in lines if "zpu-dist" in line] == ["disabled"]
    assert "zpu: DEVHOST_DISABLE=zpu,zpv keeps it out" in lines
    assert (
        "DEVHOST_DISABLE=zpu,zpv: nothing is installed that is called 'zpv'. Did you mean 'zpu'?"
    ) in lines
