"""The device as PyTorch's generic interfaces show it."""

import contextlib
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


@pytest.mark.parametrize("device", ["openreg:1", 1, torch.device("openreg", 1)])
def test_every_way_to_name_a_device(device):
    for function in (
        "get_device_properties",
        "get_device_name",
        "memory_allocated",
        "mem_get_info",
    ):
        assert getattr(torch.openreg, function)(device) is not None
    with torch.openreg.device(device):
        assert torch.openreg.current_device() == 1
    assert torch.openreg.current_device() == 0


def test_device_of_and_errors_inside(other_device):
    x = torch.ones(1, device=other_device)
    with contextlib.suppress(KeyError), torch.openreg.device_of(x):
        assert torch.openreg.current_device() == 1
        raise KeyError
    assert torch.openreg.current_device() == 0
    with torch.openreg.device_of(torch.ones(1)):
        assert torch.openreg.current_device() == 0


def test_queries_do_not_change_the_current_device(other_device):
    torch.openreg.mem_get_info(other_device)
    torch.openreg.memory_stats(other_device)
    torch.openreg.synchronize(other_device)
    torch.openreg.current_stream(other_device)
    torch.openreg.get_rng_state(other_device)
    torch.empty(1, device=other_device)
    torch.Stream(device=other_device).synchronize()
    assert torch.openreg.current_device() == 0


def test_peer_access():
    assert torch.openreg.can_device_access_peer(0, 1)
    assert torch.openreg.can_device_access_peer("openreg:1", "openreg:0")
    assert not torch.openreg.can_device_access_peer(0, 0)
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.openreg.can_device_access_peer(0, 2)


def test_capability_names_dtypes():
    dtypes = torch.openreg.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.int64, torch.complex64, torch.bool} <= dtypes
    assert torch.accelerator.get_device_capability()["supported_dtypes"] == dtypes


@pytest.mark.parametrize(
    ("visible", "ordinals"), [("1", [1]), ("1,0", [1, 0]), ("0,2", [0, 2]), ("", []), ("-1", [])]
)
def test_visible_devices(fresh, visible, ordinals):
    code = """
import torch
m = torch.openreg
print([m.get_device_properties(i).ordinal for i in range(m.device_count())])
print(m.is_available(), torch.accelerator.is_available())
"""
    process = fresh(code, OPENREG_DEVICE_COUNT="3", OPENREG_VISIBLE_DEVICES=visible)
    assert process.stderr == ""
    assert process.stdout.splitlines() == [str(ordinals), f"{bool(ordinals)} {bool(ordinals)}"]


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"OPENREG_VISIBLE_DEVICES": ""}, "OPENREG_VISIBLE_DEVICES hides all devices"),
        ({"OPENREG_VISIBLE_DEVICES": "0,7"}, "OPENREG_VISIBLE_DEVICES='0,7' is not valid"),
        ({"OPENREG_VISIBLE_DEVICES": "1,1"}, "it names device 1 twice"),
        ({"OPENREG_LAUNCH": "later"}, "OPENREG_LAUNCH='later' is not valid"),
    ],
)
def test_the_first_use_says_why_there_is_no_device(fresh, variables, reason):
    process = fresh("import torch; torch.empty(1, device='openreg')", **variables)
    assert process.returncode == 1
    assert "'openreg' cannot be used" in process.stderr
    assert "is installed" in process.stderr
    assert reason in process.stderr


def test_cached_memory_is_freed_for_another_size():
    free = torch.openreg.mem_get_info()[0]
    del_me = [torch.empty(1 << 30, dtype=torch.uint8, device="openreg") for _ in range(3)]
    del del_me
    big = torch.empty(free - (1 << 30), dtype=torch.uint8, device="openreg")
    assert big.numel() == free - (1 << 30)
