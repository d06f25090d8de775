"""The example of mixed precision: training under autocast reaches float32's loss."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

EXAMPLE = Path(__file__).parent.parent / "examples" / "mixed_precision.py"


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """The folder, output and losses of one run on the device."""
    folder = tmp_path_factory.mktemp("mixed_precision")
    options = ("--device", "openreg", "--plot", "out.png", "--json", "out.json")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), *options],
        cwd=folder,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, json.loads((folder / "out.json").read_text())


@pytest.mark.parametrize("model", ["CNN", "transformer"])
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_reaches_the_loss_of_float32(training, model, precision):
    _, output, result = training
    assert result["device"] == "openreg"
    reference, losses = (result["losses"][model][p] for p in ("float32", precision))
    assert reference[-1] < 0.25 * reference[0]  # something has been learnt
    assert losses[-1] == pytest.approx(reference[-1], rel=0.02)
    assert losses != reference  # autocast has been at work
    assert f"{model:12} {precision:9} loss {losses[-1]:.5f}" in output


def test_draws_a_plot(training):
    folder, output, _ = training
    assert "plot saved to out.png" in output
    with Image.open(folder / "out.png") as image:
        assert image.format == "PNG"
        assert image.size == (1080, 420)
        assert len(image.convert("RGB").getcolors(maxcolors=1 << 24)) > 10  # not blank


def test_script_names_no_device_package():
    source = EXAMPLE.read_text().lower()
    assert "devhost" not in source
    assert "openreg" not in source
