"""OpenReg without devices: hidden by the environment, or configured with nonsense."""

import pytest

# What is set -> why the device is not there, and which parts of the plugin were needed to tell.
CAUSES = {
    ("OPENREG_VISIBLE_DEVICES", ""): ("OPENREG_VISIBLE_DEVICES hides all devices", set()),
    ("OPENREG_VISIBLE_DEVICES", "-1"): ("OPENREG_VISIBLE_DEVICES hides all devices", set()),
    ("OPENREG_MEMORY", "lots"): ("OPENREG_MEMORY='lots' is not valid", {"_driver", "libopenreg"}),
}
CODE = """
import pathlib, sys
import torch

print(torch.device("openreg:1"), torch.openreg.is_available(), torch.openreg.device_count())
print(torch.accelerator.is_available(), torch.manual_seed(1).initial_seed())
for use in (
    lambda: torch.ones(1, device="openreg"),
    lambda: torch.nn.Linear(1, 1).to("openreg:1"),
    lambda: torch.autocast("openreg"),
    lambda: torch.openreg.Stream(),
):
    try:
        use()
    except RuntimeError as error:
        print(type(error).__name__, error)
mapped = {line.split()[-1] for line in open("/proc/self/maps") if line.count(" ") > 4}
files = {pathlib.Path(path).name for path in mapped if "devhost_openreg" in path}
print(sorted(file.partition(".")[0] for file in files))
print(sorted(m for m in sys.modules if m in ("devhost_openreg._C", "devhost_openreg._driver")))
"""


@pytest.mark.parametrize(("variable", "value"), CAUSES)
def test_every_use_explains_and_no_native_kernels_are_loaded(fresh, variable, value):
    reason, loaded = CAUSES[variable, value]
    process = fresh(CODE, **{variable: value})
    assert process.stderr == ""
    lines = process.stdout.splitlines()
    assert lines[:2] == ["openreg:1 False 0", "False 1"]
    assert len(lines) == 8
    for line in lines[2:6]:
        assert line.startswith(
            "DeviceUnavailableError device 'openreg' cannot be used: its plugin 'openreg' "
            "(devhost-openreg 0.1.0, module devhost_openreg.plugin in "
        )
        assert "is installed, but the device is not available: " in line
        assert reason in line
    assert lines[6] == str(sorted(loaded))
    assert lines[7] == str([f"devhost_openreg.{name}" for name in loaded if name == "_driver"])


def test_is_there_again_in_the_next_process(fresh):
    code = "import torch; print(torch.ones(2, device='openreg').sum().item())"
    assert fresh(code, OPENREG_VISIBLE_DEVICES="").returncode == 1
    assert fresh(code).stdout == "2.0\n"


def test_it_warns_of_nothing_at_import(fresh):
    process = fresh("import torch", OPENREG_VISIBLE_DEVICES="")
    assert (process.returncode, process.stderr) == (0, "")


def test_loading_what_was_saved_on_it_says_how_to_do_without(fresh, tmp_path):
    file = str(tmp_path / "saved.pt")
    saving = fresh(f"import torch; torch.save(torch.arange(3, device='openreg:1'), {file!r})")
    assert saving.returncode == 0, saving.stderr
    loading = fresh(f"import torch; torch.load({file!r})", OPENREG_VISIBLE_DEVICES="")
    assert loading.stderr.endswith(
        "not available: OPENREG_VISIBLE_DEVICES hides all devices. torch.load(..., "
        "map_location='cpu') loads what was saved on it\n"
    )
    code = f"import torch; print(torch.load({file!r}, map_location='cpu'))"
    assert fresh(code, OPENREG_VISIBLE_DEVICES="").stdout == "tensor([0, 1, 2])\n"
