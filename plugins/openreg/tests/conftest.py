"""Fresh interpreters for tests about importing; everything else runs on the device in this one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch


@pytest.fixture(scope="session")
def fresh():
    """Run code in a new interpreter and return the finished process."""

    def run(code, **variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEVHOST_", "OPENREG_"))}
        return subprocess.run(
            [sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", "-c", code],
            env={**kept, "DEVHOST_DEVICE": "openreg", **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture
def other_device():
    """The second device, made current for nobody."""
    assert torch.openreg.device_count() == 2
    return torch.device("openreg:1")
