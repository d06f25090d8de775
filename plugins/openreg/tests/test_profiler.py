"""torch.profiler with ProfilerActivity.PrivateUse1: device events of kernels and copies."""

import json

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def device_events(profiled):
    return [event for event in profiled.events() if event.device_type.name == "OPENREG"]


def test_every_kernel_and_copy_is_an_event():
    host = torch.rand(64, 64)
    with profile(activities=BOTH) as profiled:
        x = host.to("openreg")
        y = torch.relu(x @ x)
        y.cpu()
    events = device_events(profiled)
    assert [e.name for e in events] == ["Memcpy HtoD", "aten::mm", "aten::relu", "Memcpy DtoH"]
    assert {e.device_index for e in events} == {0}
    assert all(e.time_range.elapsed_us() > 0 for e in events)
    starts = [e.time_range.start for e in events]
    assert starts == sorted(starts)


def test_an_event_lies_inside_the_profiled_time_and_has_the_devices_duration():
    stream = torch.openreg.Stream(device="openreg:1")
    with profile(activities=BOTH) as profiled, stream:
        torch.openreg._sleep(20_000)
    (delay,) = device_events(profiled)
    assert delay.name == "Delay"
    assert delay.device_index == 1
    assert delay.time_range.elapsed_us() >= 20_000


def test_device_time_belongs_to_the_operator_that_launched_the_kernel():
    x = torch.rand(256, 256, device="openreg")
    with profile(activities=BOTH) as profiled:
        for _ in range(3):
            torch.mm(x, x)
    rows = {row.key: row for row in profiled.key_averages() if row.device_type.name == "CPU"}
    row = rows["aten::mm"]
    assert row.count == 3
    assert 0 < row.self_device_time_total <= row.device_time_total
    kernels = [event for event in device_events(profiled) if event.name == "aten::mm"]
    assert len(kernels) == 3
    total = sum(event.time_range.elapsed_us() for event in kernels)
    assert row.self_device_time_total == pytest.approx(total)


def test_the_table_has_the_devices_name():
    with profile(activities=BOTH) as profiled:
        torch.ones(4, device="openreg") + 1
    table = profiled.key_averages().table(sort_by="self_device_time_total")
    assert "Self OPENREG" in table
    assert "OPENREG total" in table


def test_chrome_trace(tmp_path):
    path = tmp_path / "trace.json"
    with profile(activities=BOTH) as profiled:
        torch.ones(4).to("openreg:1") + 1
    profiled.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    by_category = {e["cat"]: e for e in events if e.get("cat") in ("kernel", "gpu_memcpy")}
    kernel, memcpy = by_category["kernel"], by_category["gpu_memcpy"]
    assert kernel["name"] == "aten::add"
    assert kernel["dur"] > 0
    assert kernel["args"]["device"] == kernel["pid"] == 1
    assert memcpy["name"] == "Memcpy HtoD"
    assert memcpy["args"]["bytes"] == 16
    lanes = {e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == 1}
    assert "openreg:1 stream 0" in lanes
    operator = next(e for e in events if e["name"] == "aten::add" and e.get("cat") == "cpu_op")
    assert operator["args"]["External id"] == kernel["args"]["External id"]


def test_only_the_cpu_and_only_the_device():
    x = torch.ones(4, device="openreg")
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        x + 1
    assert device_events(profiled) == []
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiled:
        x + 1
    assert len(device_events(profiled)) == 1
    assert all(event.device_type.name == "OPENREG" for event in profiled.events())


def test_the_schedule_and_one_profile_after_another():
    x = torch.ones(4, device="openreg")
    seen = []
    with profile(
        activities=BOTH,
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda p: seen.append(len(device_events(p))),
        acc_events=True,  # without it PyTorch warns
    ) as profiled:
        for _ in range(8):
            x + 1
            profiled.step()
    assert seen == [2, 4]


def test_backward():
    weight = torch.ones(8, 8, device="openreg", requires_grad=True)
    with profile(activities=BOTH) as profiled:
        (weight @ weight).sum().backward()
    names = [event.name for event in device_events(profiled)]
    assert names.count("aten::mm") == 3  # one forward, two backward on autograd's thread
