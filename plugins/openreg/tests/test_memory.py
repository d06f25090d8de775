"""The caching allocator of the device, pinned host memory, and copies that do not wait."""

import gc

import pytest
import torch

MIB = 1 << 20
BUSY = 200_000  # microseconds


@pytest.fixture(autouse=True)
def _empty_cache():
    gc.collect()
    torch.openreg.synchronize()
    torch.openreg.empty_cache()
    torch.openreg.reset_peak_memory_stats()
    torch.openreg.reset_accumulated_memory_stats()
    yield
    torch.openreg.set_per_process_memory_fraction(1.0)


def device_bytes(size):
    return torch.empty(size, dtype=torch.uint8, device="openreg")


def stat(name):
    return torch.openreg.memory_stats()[name]


# ---- Blocks and segments ----


def test_small_tensors_share_a_segment():
    reserved = torch.openreg.memory_reserved()
    tensors = [device_bytes(1000) for _ in range(100)]
    assert torch.openreg.memory_reserved() - reserved == 2 * MIB
    assert len({t.data_ptr() for t in tensors}) == 100
    assert all(t.data_ptr() % 512 == 0 for t in tensors)
    del tensors
    torch.openreg.empty_cache()
    assert torch.openreg.memory_reserved() == reserved


def test_a_freed_block_is_handed_out_again():
    x = device_bytes(1000)
    address = x.data_ptr()
    del x
    assert device_bytes(900).data_ptr() == address


def test_a_large_block_is_split_and_merged_again():
    whole = device_bytes(64 * MIB)
    address = whole.data_ptr()
    del whole
    parts = [device_bytes(16 * MIB) for _ in range(4)]
    assert sorted(t.data_ptr() - address for t in parts) == [0, 16 * MIB, 32 * MIB, 48 * MIB]
    assert stat("num_device_alloc") == 1
    assert stat("inactive_split.all.current") == 0
    del parts[1]
    assert stat("inactive_split.all.current") == 1
    assert stat("inactive_split_bytes.large_pool.current") == 16 * MIB
    parts.clear()
    assert device_bytes(64 * MIB).data_ptr() == address
    assert stat("segment.all.current") == 1


def test_each_stream_has_blocks_of_its_own():
    x = device_bytes(1000)
    address = x.data_ptr()
    del x
    with torch.openreg.Stream():
        assert device_bytes(1000).data_ptr() != address
    assert device_bytes(1000).data_ptr() == address


def test_every_statistic_is_real():
    live = [device_bytes(1000), device_bytes(3 * MIB)]
    freed = device_bytes(5000)
    del freed
    stats = torch.openreg.memory_stats_as_nested_dict()
    assert stats["allocation"]["all"] == {"current": 2, "peak": 3, "allocated": 3, "freed": 1}
    assert stats["allocation"]["small_pool"]["current"] == 1
    assert stats["allocation"]["large_pool"]["current"] == 1
    assert stats["allocated_bytes"]["all"] == {
        "current": 1024 + 3 * MIB,
        "peak": 1024 + 3 * MIB + 5120,
        "allocated": 1024 + 3 * MIB + 5120,
        "freed": 5120,
    }
    assert stats["requested_bytes"]["all"]["current"] == 1000 + 3 * MIB
    assert stats["active_bytes"] == stats["allocated_bytes"]
    assert stats["active"] == stats["allocation"]
    assert stats["segment"]["all"]["current"] == 2
    assert stats["reserved_bytes"]["small_pool"]["current"] == 2 * MIB
    assert stats["reserved_bytes"]["large_pool"]["current"] == 3 * MIB
    # In the small segment: what was freed, and what was never used.
    assert stats["inactive_split"]["all"]["current"] == 2
    assert stats["inactive_split_bytes"]["all"]["current"] == 2 * MIB - 1024
    assert stats["num_device_alloc"] == 2
    assert stats["num_device_free"] == stats["num_ooms"] == stats["num_alloc_retries"] == 0
    assert len(live) == 2


def test_resets():
    x = device_bytes(1000)
    del x
    torch.openreg.reset_peak_memory_stats()
    torch.openreg.reset_accumulated_memory_stats()
    assert torch.openreg.max_memory_allocated() == torch.openreg.memory_allocated()
    assert torch.openreg.max_memory_reserved() == torch.openreg.memory_reserved()
    assert stat("allocated_bytes.all.allocated") == stat("allocated_bytes.all.freed") == 0
    assert stat("num_device_alloc") == 0


def test_the_same_numbers_through_torch_accelerator():
    x = device_bytes(7 * MIB)
    assert torch.accelerator.memory_stats() == torch.openreg.memory_stats()
    assert torch.accelerator.memory_allocated() == torch.openreg.memory_allocated() >= x.nbytes
    assert torch.accelerator.max_memory_reserved() == torch.openreg.max_memory_reserved()
    assert torch.accelerator.get_memory_info() == torch.openreg.mem_get_info()
    free, total = torch.openreg.mem_get_info()
    assert torch.openreg.device_memory_used() == total - free == torch.openreg.memory_reserved()


def test_summary_shows_the_statistics():
    x = device_bytes(40 * MIB)
    lines = torch.openreg.memory_summary().splitlines()
    assert "openreg:0" in lines[0]
    row = next(line for line in lines if line.startswith("Allocated memory"))
    assert x.nbytes == 40 * MIB
    assert row.split()[2:4] == ["40", "MiB"]
    assert len(torch.openreg.memory_summary(abbreviated=True).splitlines()) < len(lines) / 2


# ---- Pressure ----


def test_the_segments_unused_for_longest_go_first():
    torch.openreg.set_per_process_memory_fraction(512 * MIB / torch.openreg.mem_get_info()[1])
    old, new = device_bytes(200 * MIB), device_bytes(200 * MIB)
    newer = new.data_ptr()
    del old
    del new
    used = device_bytes(300 * MIB)
    assert stat("num_alloc_retries") == 1
    assert stat("num_device_free") == 1
    assert torch.openreg.memory_reserved() == 500 * MIB
    assert device_bytes(200 * MIB).data_ptr() == newer
    assert used.numel() == 300 * MIB


def test_out_of_memory_says_all_sizes_and_the_device_works_on():
    torch.openreg.set_per_process_memory_fraction(0.5)
    total = torch.openreg.mem_get_info()[1]
    keep = device_bytes(8 * MIB)
    before = torch.openreg.memory_allocated()
    free = total - torch.openreg.memory_reserved()
    with pytest.raises(torch.OutOfMemoryError) as error:
        device_bytes(5 << 30)
    assert str(error.value).startswith(
        "openreg:0 out of memory. Tried to allocate 5368709120 bytes. "
        f"The device has {total} bytes, of which {free} are free; "
        f"PyTorch has {before} bytes allocated and {total - free} reserved, "
        f"and may reserve {total // 2}."
    )
    assert torch.openreg.memory_allocated() == before
    assert stat("num_ooms") == 1
    assert keep.fill_(3).sum(dtype=torch.int64).item() == 24 * MIB


@pytest.mark.parametrize("size", [2**62, 2**63 - 1])
def test_sizes_that_overflow(size):
    with pytest.raises((torch.OutOfMemoryError, RuntimeError)):
        device_bytes(size)
    assert device_bytes(1).numel() == 1


def test_memory_fraction_is_checked_and_told():
    assert torch.openreg.get_per_process_memory_fraction() == 1.0
    torch.openreg.set_per_process_memory_fraction(0.25, "openreg:1")
    assert torch.openreg.get_per_process_memory_fraction(1) == 0.25
    assert torch.openreg.get_per_process_memory_fraction(0) == 1.0
    torch.openreg.set_per_process_memory_fraction(1.0, 1)
    for wrong in (-0.1, 1.5):
        with pytest.raises(ValueError, match="from 0 to 1"):
            torch.openreg.set_per_process_memory_fraction(wrong)
    with pytest.raises(TypeError):
        torch.openreg.set_per_process_memory_fraction(1)


# ---- Other streams ----


def test_a_block_used_on_another_stream_is_held_until_that_has_passed():
    stream = torch.openreg.Stream()
    x = device_bytes(3 * MIB)
    address = x.data_ptr()
    with stream:
        y = x + 1
        torch.openreg._sleep(BUSY)
    x.record_stream(stream)
    before = torch.openreg.memory_allocated()
    del x
    assert torch.openreg.memory_allocated() == before - 3 * MIB
    assert stat("active_bytes.all.current") == before  # not allocated, but still active
    other = device_bytes(3 * MIB)
    assert other.data_ptr() != address
    stream.synchronize()
    assert stat("active_bytes.all.current") == torch.openreg.memory_allocated()
    assert device_bytes(3 * MIB).data_ptr() == address
    assert y.numel() == 3 * MIB


def test_under_pressure_the_allocator_waits_for_other_streams():
    torch.openreg.set_per_process_memory_fraction(256 * MIB / torch.openreg.mem_get_info()[1])
    stream = torch.openreg.Stream()
    x = device_bytes(200 * MIB)
    with stream:
        torch.openreg._sleep(BUSY)
    x.record_stream(stream)
    del x
    assert device_bytes(250 * MIB).numel() == 250 * MIB
    assert stat("num_sync_all_streams") == 1
    assert stat("num_ooms") == 0


def test_memory_freed_while_its_stream_is_busy_is_not_overwritten_too_soon():
    stream = torch.openreg.Stream()
    source = torch.full((MIB,), 7.0).pin_memory()
    with stream:
        for value in range(20):
            torch.openreg._sleep(1000)
            x = source.to("openreg", non_blocking=True)
            y = x.clone()  # queued
            del x  # its block is reused at once, for what comes later in the same stream
            z = torch.full((MIB,), float(value), device="openreg")
            assert y.cpu().eq(7).all()
            assert z.cpu().eq(value).all()


def test_resized_storages_keep_their_bytes_on_any_stream():
    stream = torch.openreg.Stream()
    x = torch.arange(1000.0, device="openreg")
    with stream:
        torch.openreg._sleep(1000)
        x.untyped_storage().resize_(8000)
    junk = torch.zeros(1000, device="openreg")
    stream.synchronize()
    assert x.cpu().equal(torch.arange(1000.0))
    assert junk.cpu().eq(0).all()


# ---- Pinned memory ----


def test_is_pinned_starts_nothing(fresh):
    code = "import torch; print(torch.rand(2).is_pinned(), torch.openreg.is_initialized())"
    assert fresh(code).stdout.split() == ["False", "False"]


def test_pinned():
    p = torch.rand(4, 4).pin_memory()
    assert p.is_pinned()
    assert p.pin_memory().data_ptr() == p.data_ptr()
    assert p[1:, 2].is_pinned()
    assert p.untyped_storage().is_pinned()
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert not torch.rand(2).is_pinned()
    assert not p.clone().is_pinned()
    assert not torch.rand(2, device="openreg").is_pinned()
    with pytest.raises(RuntimeError, match="pin"):
        torch.rand(2, device="openreg").pin_memory()
    assert torch.empty(0, pin_memory=True).numel() == 0


def test_pinned_memory_is_cached():
    p = torch.empty(5000, dtype=torch.uint8, pin_memory=True)
    address = p.data_ptr()
    del p
    assert torch.empty(6000, dtype=torch.uint8, pin_memory=True).data_ptr() == address
    torch.accelerator.empty_host_cache()
    assert torch.empty(5000, dtype=torch.uint8, pin_memory=True).is_pinned()


def test_pinned_memory_of_a_queued_copy_is_held():
    stream = torch.openreg.Stream()
    p = torch.full((MIB,), 5.0, pin_memory=True)
    address = p.data_ptr()
    with stream:
        torch.openreg._sleep(BUSY)
        d = p.to("openreg", non_blocking=True)
    del p
    other = torch.zeros(MIB, pin_memory=True)
    assert other.data_ptr() != address
    stream.synchronize()
    assert d.cpu().eq(5).all()
    assert torch.zeros(MIB, pin_memory=True).data_ptr() == address


@pytest.mark.parametrize("workers", [0, 2])
def test_data_loader_pins(workers):
    data = torch.utils.data.TensorDataset(torch.arange(64.0).view(32, 2), torch.arange(32))
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=8,
        pin_memory=True,
        num_workers=workers,
        multiprocessing_context="spawn" if workers else None,
    )
    seen = []
    for x, label in loader:
        assert x.is_pinned()
        assert label.is_pinned()
        seen += x.to("openreg", non_blocking=True).sum(1).tolist()
    assert seen == torch.arange(64.0).view(32, 2).sum(1).tolist()


# ---- Copies ----


def test_non_blocking_to_pageable_memory_has_arrived():
    for _ in range(20):
        x = torch.full((1 << 18,), 5.0, device="openreg")
        y = x.to("cpu", non_blocking=True)
        assert y.eq(5).all()
        del x
    stream = torch.openreg.Stream()
    with stream:
        torch.openreg._sleep(1000)
        x = torch.full((1 << 18,), 5.0, device="openreg")
        assert x.to("cpu", non_blocking=True).eq(5).all()


def test_non_blocking_to_pinned_memory_arrives_with_the_stream():
    stream = torch.openreg.Stream()
    x = torch.full((1 << 18,), 6.0, device="openreg")
    p = torch.zeros(1 << 18).pin_memory()
    with stream:
        torch.openreg._sleep(BUSY)
        p.copy_(x, non_blocking=True)
        assert not stream.query()
        assert p.eq(0).all()  # not yet
    stream.synchronize()
    assert p.eq(6).all()


def test_blocking_copies_wait_even_with_pinned_memory():
    stream = torch.openreg.Stream()
    p = torch.full((1 << 18,), 4.0).pin_memory()
    with stream:
        torch.openreg._sleep(2000)
        d = p.to("openreg")
        assert stream.query()
        p.zero_()
        assert d.cpu().eq(4).all()


def test_copies_between_devices_are_ordered_on_both_sides():
    here, there = torch.openreg.Stream(), torch.openreg.Stream(device="openreg:1")
    with here, there:
        source = torch.full((MIB,), 1.0, device="openreg:0")
        with torch.openreg.device(0):
            torch.openreg._sleep(2000)
        pinned = torch.full((MIB,), 2.0).pin_memory()
        source.copy_(pinned, non_blocking=True)  # queued behind the delay
        copy = source.to("openreg:1", non_blocking=True)
        source.copy_(torch.full((MIB,), 3.0).pin_memory(), non_blocking=True)
        assert copy.cpu().eq(2).all()
        assert source.cpu().eq(3).all()
