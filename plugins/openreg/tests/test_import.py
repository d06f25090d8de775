"""What a user sees who types `import torch` and nothing else."""

import pytest


def printed(process):
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return process.stdout.strip()


@pytest.mark.parametrize("imports", ["torch", "torch, devhost_openreg", "devhost_openreg, torch"])
def test_the_device_is_there_in_either_order_of_imports(fresh, imports):
    code = f"import {imports}; print(torch.tensor(1, device='openreg'))"
    assert printed(fresh(code)) == "tensor(1, device='openreg:0')"


def test_autoload_off_leaves_no_trace_and_load_does_the_same_by_hand(fresh):
    code = """
import sys, torch
print([m for m in sys.modules if m.startswith("devhost")])
print(torch._C._get_privateuse1_backend_name())
import devhost
devhost.load(), devhost.load()
print(torch.tensor(1, device="openreg"))
"""
    lines = printed(fresh(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")).splitlines()
    assert lines == ["[]", "privateuseone", "tensor(1, device='openreg:0')"]


@pytest.mark.parametrize(
    "first_use",
    [
        "torch.rand(2).to('openreg')",
        "torch.zeros(2, device='openreg')",
        "torch.nn.Linear(2, 2).to('openreg').weight",
        "torch.empty_strided((2,), (1,), device='openreg')",
        "torch.tensor([1], device='openreg')",
    ],
)
def test_any_first_use_works_and_fills_in_the_index(fresh, first_use):
    assert printed(fresh(f"import torch; print(({first_use}).device)")) == "openreg:0"


def test_environment_variables_size_the_device(fresh):
    code = """
import torch
print(torch.openreg.device_count(), torch.openreg.get_device_properties(2).total_memory)
try:
    torch.empty(1 << 20, device="openreg:2")
except torch.OutOfMemoryError as error:
    print(error)
print(torch.ones(2, device="openreg:2").sum().item())
"""
    lines = printed(fresh(code, OPENREG_DEVICE_COUNT="3", OPENREG_MEMORY="1MiB")).splitlines()
    assert lines[0] == "3 1048576"
    assert "openreg:2 out of memory. Tried to allocate 4194304 bytes." in lines[1]
    assert "The device has 1048576 bytes" in lines[1]
    assert lines[2] == "2.0"


def test_a_bad_variable_is_explained_and_torch_still_imports(fresh):
    code = "import torch; print(torch.openreg.is_available()); torch.empty(1, device='openreg')"
    process = fresh(code, OPENREG_DEVICE_COUNT="two")
    assert process.stdout.strip() == "False"
    assert process.returncode == 1
    assert "OPENREG_DEVICE_COUNT" in process.stderr
    assert "two" in process.stderr


def test_the_host_cannot_touch_device_memory(fresh):
    code = """
import ctypes, torch
x = torch.ones(4, device="openreg")
print(x.sum().item(), flush=True)
ctypes.c_float.from_address(x.data_ptr()).value
print("not reached")
"""
    process = fresh(code)
    assert process.stdout.strip() == "4.0"
    assert process.returncode < 0  # ended by the signal for a bad address
