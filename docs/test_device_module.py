"""The table in device-module.md is what the three modules really have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import torch.cuda
import torch.xpu

PAGE = Path(__file__).with_name("device-module.md")
ROW = re.compile(r"^\| `(\w+)` \| (yes)? *\| (yes)? *\| ([a-z ]+) \| (.*?) *\|$", re.MULTILINE)
ROWS = {row[0]: row[1:] for row in ROW.findall(PAGE.read_text())}


def public_names(module):
    """Return what a module exports."""
    return {name for name in module.__all__ if not name.startswith("_")}


def test_every_name_of_both_modules_has_a_row():
    if not torch.__version__.startswith("2.13"):
        pytest.skip(f"the table is about PyTorch 2.13, and this is {torch.__version__}")
    cuda, xpu = public_names(torch.cuda), public_names(torch.xpu)
    assert set(ROWS) == cuda | xpu
    assert {name for name, row in ROWS.items() if row[0] == "yes"} == cuda
    assert {name for name, row in ROWS.items() if row[1] == "yes"} == xpu


@pytest.mark.parametrize("name", ROWS)
def test_the_row_says_what_the_device_module_has(name):
    _, _, status, reason = ROWS[name]
    assert status in {"same", "not applicable", "missing"}
    assert (status == "same") == hasattr(torch.openreg, name)
    assert (status == "same") == (reason == "")
