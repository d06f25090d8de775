"""The example trains, and trains the same on the CPU and on a device it knows nothing of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

DIGITS = Path(__file__).parent.parent / "examples" / "digits.py"
DEVICES = ("cpu", "openreg")
EPOCHS = 5


def run(folder, *arguments, **environment):
    return subprocess.run(
        [sys.executable, str(DIGITS), *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """One training on every device: its folder, output, losses and accuracies."""
    runs = {}
    for device in DEVICES:
        folder = tmp_path_factory.mktemp(device)
        options = ("--device", device, "--epochs", str(EPOCHS), "--json", "out.json")
        done = run(folder, *options, "--plot", "out.png")
        assert done.returncode == 0, done.stderr
        result = json.loads((folder / "out.json").read_text())
        runs[device] = SimpleNamespace(folder=folder, stdout=done.stdout, **result)
    return runs


@pytest.mark.parametrize("device", DEVICES)
def test_learns_the_digits(training, device):
    done = training[device]
    assert done.device == device
    assert len(done.losses) == len(done.accuracies) == EPOCHS
    assert done.losses == sorted(done.losses, reverse=True)
    assert done.accuracies[-1] > 0.95
    assert f"epoch  1  loss {done.losses[0]:.8f}" in done.stdout
    assert f"test accuracy {done.accuracies[-1]:.4f}; plot saved to out.png" in done.stdout


def test_losses_agree_between_devices(training):
    cpu, openreg = (training[device] for device in DEVICES)
    assert openreg.losses == pytest.approx(cpu.losses, rel=0, abs=1e-5)
    assert openreg.accuracies == pytest.approx(cpu.accuracies, rel=0, abs=0.01)


@pytest.mark.parametrize("device", DEVICES)
def test_draws_a_plot(training, device):
    with Image.open(training[device].folder / "out.png") as image:
        assert image.format == "PNG"
        assert image.size == (1080, 420)
        assert len(image.convert("RGB").getcolors(maxcolors=1 << 24)) > 10  # not blank


@pytest.mark.parametrize(("autoload", "device"), [("1", "openreg"), ("0", "cpu")])
def test_trains_on_the_current_accelerator_by_default(tmp_path, autoload, device):
    options = ("--epochs", "1", "--json", "out.json")
    done = run(tmp_path, *options, TORCH_DEVICE_BACKEND_AUTOLOAD=autoload)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["device"] == device
    assert (tmp_path / "digits.png").is_file()


def test_another_seed_trains_differently(training, tmp_path):
    options = ("--device", "cpu", "--epochs", "1", "--json", "out.json")
    assert run(tmp_path, *options, "--seed", "1").returncode == 0
    (loss,) = json.loads((tmp_path / "out.json").read_text())["losses"]
    assert abs(loss - training["cpu"].losses[0]) > 1e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--device", "abacus"), "argument --device: Expected one of cpu, cuda"),
        (("--epochs", "0"), "argument --epochs: must be at least 1, not 0"),
        (("--batch-size", "-3"), "argument --batch-size: must be at least 1, not -3"),
    ],
)
def test_refuses_bad_options(tmp_path, arguments, message):
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_script_names_no_device_package():
    source = DIGITS.read_text().lower()
    assert "devhost" not in source
    assert "openreg" not in source
