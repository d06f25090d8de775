"""Everything at once: threads, both devices, streams, pinned copies, every size of tensor.

OREG_STRESS_ROUNDS sets the rounds of each thread; `make stress` runs many.
"""

import ctypes
import gc
import os
import random
import threading
from pathlib import Path

import pytest
import torch

THREADS = 8
ROUNDS = int(os.environ.get("OREG_STRESS_ROUNDS", "60"))
LARGEST = 256 << 20 if "OREG_STRESS_ROUNDS" in os.environ else 4 << 20  # bytes


class MallocInfo(ctypes.Structure):
    """What glibc's mallinfo2() returns."""

    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks")
    _fields_ = [(name, ctypes.c_size_t) for name in (*_names, "fordblks", "keepcost")]


def host_bytes():
    """Memory that malloc has handed out; it keeps freed memory resident, which is no growth."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = MallocInfo
    info = mallinfo2()
    return info.uordblks + info.hblkhd


def resident_device_bytes():
    """The part of the devices' memory that the system has given pages to."""
    resident, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(maxsplit=1)[0]:  # the head of a mapping
            begin, end = (int(address, 16) for address in line.split()[0].split("-"))
            inside = end - begin >= 2 * torch.openreg.mem_get_info()[1]
        elif inside and line.startswith("Rss:"):
            resident += int(line.split()[1]) * 1024
    return resident


def work(seed, rounds, failures):
    """Send numbers through both devices and back on streams that wait for each other."""
    generator = random.Random(seed)
    devices = [torch.device("openreg", index) for index in (seed % 2, 1 - seed % 2)]
    streams = [torch.Stream(device=device) for device in devices]
    for number in range(rounds):
        size = int(LARGEST ** generator.random())
        value = (seed * 31 + number) % 200
        host = torch.empty(size, dtype=torch.uint8, pin_memory=generator.random() < 0.5)
        host.fill_(value)
        with streams[0]:
            if generator.random() < 0.1:
                torch.openreg._sleep(generator.randrange(500))
            x = host.to(devices[0], non_blocking=True)
            del host
            x += 1
            parts = x.split(max(1, size // 3))
            x = torch.cat(parts)
        streams[1].wait_stream(streams[0])
        with streams[1]:
            y = x.to(devices[1], non_blocking=True)
            x.record_stream(streams[1])
            del x, parts
            y.mul_(1)
            back = torch.empty(size, dtype=torch.uint8, pin_memory=True)
            back.copy_(y, non_blocking=True)
            event = streams[1].record_event()
        event.synchronize()
        if not back.eq(value + 1).all():
            failures.append((seed, number, size))


def run_threads(rounds):
    failures = []
    threads = [
        threading.Thread(target=work, args=(seed, rounds, failures)) for seed in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.fixture(autouse=True)
def _settled():
    gc.collect()
    for index in range(2):
        torch.openreg.synchronize(index)
    torch.openreg.empty_cache()
    torch.accelerator.empty_host_cache()


def test_many_threads_on_both_devices():
    kept = [torch.openreg.memory_allocated(index) for index in range(2)]
    reserved = [torch.openreg.memory_reserved(index) for index in range(2)]
    host = []
    for _ in range(3):
        run_threads(ROUNDS)
        gc.collect()
        for index in range(2):
            torch.openreg.synchronize(index)
            assert torch.openreg.memory_allocated(index) == kept[index]
            stats = torch.openreg.memory_stats(index)
            assert stats["active_bytes.all.current"] == kept[index]
            assert stats["num_ooms"] == 0
        torch.openreg.empty_cache()
        torch.accelerator.empty_host_cache()
        host.append(host_bytes())
        assert resident_device_bytes() <= sum(reserved)
        assert [torch.openreg.memory_reserved(index) for index in range(2)] == reserved
    # The first run fills the host's own caches; after that nothing grows.
    assert abs(host[2] - host[1]) < 4 << 20
