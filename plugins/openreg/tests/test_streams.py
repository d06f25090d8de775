"""Streams and events: order, overlap, and what PyTorch builds on them.

Time passes only where `_sleep` keeps a stream busy; what is asserted is order, never duration.
"""

import contextlib
import threading

import pytest
import torch

BUSY = 200_000  # microseconds: long enough that everything else happens meanwhile


@pytest.fixture
def stream():
    return torch.openreg.Stream()


@pytest.fixture(autouse=True)
def _idle_device_afterwards():
    yield
    for index in range(torch.openreg.device_count()):
        torch.openreg.synchronize(index)
    assert torch.openreg.current_device() == 0
    assert torch.openreg.current_stream() == torch.openreg.default_stream()


def test_ids_and_native_handles_differ():
    streams = [torch.openreg.default_stream(), *(torch.openreg.Stream() for _ in range(10))]
    assert len({stream.stream_id for stream in streams}) == 11
    assert len({stream.native_handle for stream in streams}) == 11
    assert all(stream.native_handle for stream in streams)
    assert torch.openreg.Stream(device="openreg:1").device == torch.device("openreg:1")


def test_the_pool_is_reused_when_it_is_used_up():
    first = [torch.openreg.Stream() for _ in range(32)]
    again = [torch.openreg.Stream() for _ in range(32)]
    assert {s.stream_id for s in first} == {s.stream_id for s in again}
    urgent = torch.openreg.Stream(priority=-1)
    assert urgent.stream_id not in {s.stream_id for s in first}


def test_a_busy_stream_does_not_hold_up_the_caller_or_other_streams(stream):
    other = torch.openreg.Stream()
    with stream:
        torch.openreg._sleep(BUSY)
        assert not stream.query()
    with other:
        y = torch.ones(4, device="openreg") + 1
    assert other.query()
    assert y.tolist() == [2, 2, 2, 2]
    assert not stream.query()
    stream.synchronize()
    assert stream.query()


# Both kernels have to be running for either to end: each waits for the other.
RENDEZVOUS = """
import threading, torch
meeting = threading.Barrier(2)
@torch.library.custom_op("mine::meet", mutates_args=(), device_types="cpu")
def meet(x: torch.Tensor) -> torch.Tensor:
    meeting.wait(60)
    return x + 1
@meet.register_fake
def _(x):
    return torch.empty_like(x)
met = []
for device in ("openreg:0", "openreg:1"):
    for stream in (torch.openreg.Stream(), torch.openreg.Stream(device=device)):
        with stream:
            met.append(meet(torch.ones(1, device=stream.device)))
for index in (0, 1):
    torch.openreg.synchronize(index)
print([x.item() for x in met], meeting.broken)
"""


def test_kernels_of_two_streams_run_at_the_same_time(fresh):
    process = fresh(RENDEZVOUS, OPENREG_LAUNCH="async")
    assert process.returncode == 0, process.stderr
    assert process.stdout == "[2.0, 2.0, 2.0, 2.0] False\n"


def test_an_urgent_stream_waits_for_no_other(stream):
    urgent = torch.openreg.Stream(priority=-1)
    with stream:
        torch.openreg._sleep(BUSY)
    with urgent:
        torch.openreg._sleep(0)  # left to the stream's worker
    urgent.synchronize()
    assert not stream.query()


def test_there_are_no_graphs():
    with pytest.raises(RuntimeError, match="Graph is not supported on device type: openreg"):
        torch.accelerator.Graph()
    assert not torch.openreg.is_current_stream_capturing()


def test_current_stream_is_restored_after_an_error(stream):
    assert torch.openreg.current_stream() == torch.openreg.default_stream()
    with contextlib.suppress(KeyError), torch.openreg.stream(stream):
        assert torch.openreg.current_stream() == stream
        raise KeyError
    assert torch.openreg.current_stream() == torch.openreg.default_stream()


def test_stream_contexts_nest_across_devices(stream):
    there = torch.openreg.Stream(device="openreg:1")
    with stream:
        with there:
            assert torch.openreg.current_device() == 1
            assert torch.openreg.current_stream() == there
            assert torch.openreg.current_stream(0) == stream
        assert torch.openreg.current_device() == 0
        assert torch.openreg.current_stream() == stream


def test_set_stream(stream):
    torch.openreg.set_stream(stream)
    try:
        assert torch.accelerator.current_stream() == stream
    finally:
        torch.openreg.set_stream(torch.openreg.default_stream())


def test_current_stream_and_device_are_each_threads_own(stream):
    seen = []

    def work():
        torch.openreg.set_device(1)
        seen.append((torch.openreg.current_device(), torch.openreg.current_stream().stream_id))
        seen.append(torch.empty(1, device="openreg").device.index)

    with stream:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert torch.openreg.current_stream() == stream
    assert seen == [(1, 0), 1]
    assert torch.openreg.current_device() == 0


def test_events_order_streams(stream):
    event = torch.Event(device="openreg")
    other = torch.openreg.Stream()
    with stream:
        torch.openreg._sleep(BUSY)
        event.record(stream)
    other.wait_event(event)
    assert not event.query()
    assert not other.query()  # it waits for the first
    other.synchronize()
    assert event.query()
    assert stream.query()


def test_wait_stream_across_devices(stream):
    there = torch.openreg.Stream(device="openreg:1")
    with stream:
        torch.openreg._sleep(BUSY)
    there.wait_stream(stream)
    assert not there.query()
    there.synchronize()
    assert stream.query()


def test_an_event_belongs_to_its_device(stream):
    event = torch.Event(device="openreg:0")
    event.record(stream)
    with pytest.raises(RuntimeError, match="device index"):
        event.record(torch.openreg.Stream(device="openreg:1"))


def test_elapsed_time_needs_timing(stream):
    plain, timed = torch.Event(device="openreg"), torch.Event(device="openreg", enable_timing=True)
    plain.record(stream)
    timed.record(stream)
    with pytest.raises((RuntimeError, ValueError), match="timing"):
        plain.elapsed_time(timed)


def test_elapsed_time_is_in_milliseconds(stream):
    start, end = (torch.Event(device="openreg", enable_timing=True) for _ in range(2))
    with stream:
        start.record()
        torch.openreg._sleep(20_000)
        end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 20


def test_an_event_that_was_never_recorded_has_passed(stream):
    event = torch.Event(device="openreg")
    assert event.query()
    event.synchronize()
    stream.wait_event(event)
    assert stream.query()


def test_events_can_be_recorded_again(stream):
    event = torch.Event(device="openreg")
    event.record(stream)
    assert event.query()
    with stream:
        torch.openreg._sleep(BUSY)
        event.record(stream)
    assert not event.query()
    event.synchronize()
    assert stream.query()


@pytest.mark.parametrize("delay", [-1, 2**62])
def test_impossible_delays(delay):
    with pytest.raises((ValueError, RuntimeError), match="delay"):
        torch.openreg._sleep(delay)


def test_backward_runs_on_the_stream_of_the_forward(stream):
    seen = []

    class Record(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, grad):
            seen.append(torch.openreg.current_stream())
            return grad * 3

    weight = torch.ones(1 << 16, device="openreg", requires_grad=True)
    with stream:
        y = Record.apply(weight).sum()
    torch.openreg.current_stream().wait_stream(stream)
    y.backward()
    assert seen == [stream]
    assert weight.grad.cpu().eq(3).all()


def test_backward_waits_for_the_callers_stream_and_the_caller_for_backward(stream):
    weight = torch.ones(1 << 10, device="openreg", requires_grad=True)
    with stream:
        torch.openreg._sleep(BUSY)
        y = (weight * 3).sum()
    torch.openreg.current_stream().wait_stream(stream)
    y.backward()
    assert weight.grad.cpu().eq(3).all()  # no synchronization by hand


@pytest.mark.parametrize("device_threads", [False, True])
def test_backward_in_several_threads_at_once(device_threads):
    results = {}

    def train(index):
        device = f"openreg:{index % 2}"
        torch.ones(1, device=device)  # decides where backward runs, unless asked otherwise
        torch.autograd.set_multithreading_enabled(device_threads)
        with torch.openreg.Stream(device=device):
            weight = torch.full((64, 64), 0.5, device=device, requires_grad=True)
            for _ in range(20):
                (weight @ weight).sum().backward()
            results[index] = weight.grad.cpu()

    threads = [threading.Thread(target=train, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    for grad in results.values():
        assert grad.eq(20 * 64.0).all()  # d/dw sum(w @ w) = row sums + column sums


@pytest.mark.parametrize("target", ["device", "pinned", "peer"])
def test_a_tensor_freed_behind_another_threads_kernel_is_read_before_it_is_reused(target):
    # The kernels of the other thread allocate their results while this one's copy waits for them.
    size = 1 << 18
    stop = threading.Event()

    def work():
        minus_one = torch.full((size,), -1.0, device="openreg")
        while not stop.is_set():
            minus_one * 1

    thread = threading.Thread(target=work)
    thread.start()
    outputs = {
        "device": torch.empty(size, device="openreg"),
        "pinned": torch.empty(size, pin_memory=True),
        "peer": torch.empty(size, device="openreg:1"),
    }
    output = outputs[target]
    wrong = []
    try:
        for number in range(300):
            source = torch.full((size,), float(number), device="openreg")
            output.copy_(source, non_blocking=True)
            del source
            torch.openreg.synchronize()
            if output.ne(number).any().item():
                wrong.append(number)
    finally:
        stop.set()
        thread.join()
    assert wrong == []
