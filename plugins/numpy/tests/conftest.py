"""Interpreters in which the device is active, whatever other plugins are installed."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

HERE = Path(__file__).parent
TESTS = HERE.parents[2] / "tests"
# How interpreters are run is written down once, for the tests of the host.
SHARED = SimpleNamespace(**runpy.run_path(str(TESTS / "conftest.py")))


def environment(**variables):
    """The environment of a process in which the device is active."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEVHOST_", "TORCH_"))}
    return {**kept, "DEVHOST_DEVICE": "ndarray", "DEVHOST_STRICT": "1", **variables}


@pytest.fixture(scope="session")
def environ():
    """Return the environment of a process in which the device is active."""
    return environment


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """An interpreter with torch, the device and tests/compare.py; it runs code, see Interpreter."""
    command = [sys.executable, "-W", "error", str(TESTS / "interpreter.py")]
    folder = tmp_path_factory.mktemp("device")
    with SHARED.Interpreter(command, environment(), folder) as interpreter:
        interpreter((HERE / "compare.py").read_text())
        yield interpreter


@pytest.fixture
def raises():
    """``with raises("ValueError: ...")``: an exception of the other interpreter."""
    return lambda pattern: pytest.raises(SHARED.Raised, match=f"^{pattern}")
