"""A device for comparison: PyTorch's stock CPU fallback, compiled when it is asked for.

A process has room for one out-of-tree device, so that it is measured in a process of its own, with
``DEVHOST_DEVICE=none``.
"""

from __future__ import annotations

import types
from pathlib import Path

import torch
from torch.utils import cpp_extension

NAME = "stock_fallback"
SOURCE = Path(__file__).with_suffix(".cpp")
BUILD = Path(__file__).parent.parent / "build" / "benchmarks"


def register() -> None:
    """Build the device, under a minute and only once, and make it known as ``stock_fallback``.

    Raises:
        RuntimeError: It does not compile, or the process has another out-of-tree device already.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    cpp_extension.load(
        NAME,
        [str(SOURCE)],
        extra_cflags=["-O2"],
        build_directory=str(BUILD),
        is_python_module=False,
    )
    torch.utils.rename_privateuse1_backend(NAME)
    module = types.ModuleType(f"torch.{NAME}")
    members = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "is_initialized": lambda: True,
        "_is_in_bad_fork": lambda: False,
        # Random numbers are the CPU's.
        "manual_seed_all": torch.default_generator.manual_seed,
        "get_rng_state": lambda device=0: torch.default_generator.get_state(),  # noqa: ARG005
        "set_rng_state": lambda state, device=0: torch.default_generator.set_state(state),  # noqa: ARG005
    }
    module.__dict__.update(members)
    torch._register_device_module(NAME, module)  # noqa: SLF001, PyTorch's API for devices
