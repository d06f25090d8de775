"""The device as PyTorch's generic interfaces show it."""

import importlib

import pytest
import torch


def test_one_module_under_every_name():
    module = torch.openreg
    assert importlib.import_module("torch.openreg") is module
    assert torch.get_device_module("openreg") is module
    assert torch.get_device_module(torch.device("openreg:0")) is module


def test_it_is_the_accelerator():
    assert torch.accelerator.current_accelerator() == torch.device("openreg")
    assert torch.accelerator.device_count() == torch.openreg.device_count() == 2
    assert torch.openreg.is_available()


def test_generated_methods_of_tensors_modules_and_storages():
    x = torch.ones(2)
    assert not x.is_openreg
    assert x.openreg().is_openreg
    assert x.openreg(1).device == torch.device("openreg:1")
    assert next(torch.nn.Linear(2, 2).openreg().parameters()).device.type == "openreg"
    storage = x.untyped_storage().openreg()
    assert storage.device.type == "openreg"
    assert storage.is_openreg
    assert not x.untyped_storage().is_openreg


def test_properties():
    properties = torch.openreg.get_device_properties(0)
    assert properties.name == torch.openreg.get_device_name(0)
    assert properties.total_memory == 8 << 30
    assert properties.multi_processor_count >= 1
    assert torch.openreg.mem_get_info(0)[1] == properties.total_memory


def test_current_device_is_set_and_restored(other_device):
    assert torch.openreg.current_device() == 0
    with torch.openreg.device(other_device):
        assert torch.openreg.current_device() == 1
        assert torch.empty(1, device="openreg").device == other_device
    assert torch.openreg.current_device() == 0


@pytest.mark.parametrize("device", ["openreg:2", "openreg:7", "openreg:127"])
def test_no_such_device(device):
    with pytest.raises(RuntimeError, match="no device"):
        torch.empty(1, device=device)
    assert torch.ones(1, device="openreg").item() == 1


def test_negative_index_does_not_parse():
    with pytest.raises(RuntimeError, match=r"nvalid device string|negative"):
        torch.device("openreg:-1")


@pytest.mark.parametrize(
    "call",
    [
        lambda cpu, here, there: here + there,
        lambda cpu, here, there: here + cpu,
        lambda cpu, here, there: cpu @ here,
        lambda cpu, here, there: torch.cat([here, cpu]),
        lambda cpu, here, there: torch.special.i0e(here).copysign(there),
        lambda cpu, here, there: cpu.add_(here),
        lambda cpu, here, there: torch.add(here, here, out=torch.empty(2, 2)),
        lambda cpu, here, there: here.index_select(0, torch.tensor([0])),
        lambda cpu, here, there: torch.where(here > 0, here, there),
    ],
)
def test_tensors_on_different_devices_do_not_mix(call):
    cpu = torch.ones(2, 2)
    here, there = cpu.to("openreg:0"), cpu.to("openreg:1")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        call(cpu, here, there)
    assert torch.equal(here.cpu(), cpu)


def test_out_of_memory_leaves_the_device_working():
    before = torch.openreg.memory_allocated()
    with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
        torch.empty(1 << 55, dtype=torch.uint8, device="openreg")
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate 9663676416 bytes"):
        torch.empty(9 << 30, dtype=torch.uint8, device="openreg")
    assert torch.openreg.memory_allocated() == before
    assert torch.ones(2, device="openreg").sum().item() == 2


def test_memory_is_counted_and_given_back():
    torch.openreg.empty_cache()
    allocated, reserved = torch.openreg.memory_allocated(), torch.openreg.memory_reserved()
    x = torch.empty(1 << 20, device="openreg")
    assert torch.openreg.memory_allocated() - allocated == 4 << 20
    del x
    assert torch.openreg.memory_allocated() == allocated
    assert torch.openreg.memory_reserved() - reserved == 4 << 20  # cached for the next tensor
    torch.openreg.empty_cache()
    assert torch.openreg.memory_reserved() == reserved


def test_cached_memory_is_freed_for_another_size():
    free = torch.openreg.mem_get_info()[0]
    del_me = [torch.empty(1 << 30, dtype=torch.uint8, device="openreg") for _ in range(3)]
    del del_me
    big = torch.empty(free - (1 << 30), dtype=torch.uint8, device="openreg")
    assert big.numel() == free - (1 << 30)


def test_streams_and_events():
    first, second = torch.Stream(device="openreg"), torch.Stream(device="openreg")
    assert first.stream_id != second.stream_id
    with first:
        assert torch.accelerator.current_stream() == first
        y = torch.ones(8, device="openreg") * 2
    second.wait_stream(first)
    with second:
        assert (y + 1).sum().item() == 24
    start, end = (torch.Event(device="openreg", enable_timing=True) for _ in range(2))
    start.record(first)
    end.record(first)
    end.synchronize()
    assert start.query()
    assert start.elapsed_time(end) >= 0
    with pytest.raises(RuntimeError, match="device index"):
        start.record(torch.Stream(device="openreg:1"))


def test_pinned_memory():
    x = torch.rand(4, 4).pin_memory()
    assert x.is_pinned()
    assert x[1:, 2].is_pinned()
    assert not torch.rand(2).is_pinned()
    assert torch.equal(x.to("openreg", non_blocking=True).cpu(), x)


def test_a_forked_child_is_told_to_use_spawn(fresh):
    code = """
import os, torch
torch.ones(1, device="openreg")
pid = os.fork()
if pid == 0:
    assert torch.openreg._is_in_bad_fork()
    torch.manual_seed(1)
    try:
        torch.ones(1, device="openreg")
    except RuntimeError as error:
        os._exit(0 if "spawn" in str(error) else 1)
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), torch.ones(1, device="openreg").item())
"""
    process = fresh(code)
    assert process.stdout.split() == ["0", "1.0"], process.stderr
