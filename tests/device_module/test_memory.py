"""Memory functions for a plugin without an allocator of statistics, and the summary's table."""

import pytest
import torch

from devhost.device_module.memory import summary


@pytest.mark.parametrize(
    "call", ["memory_stats()", "memory_summary()", "memory_stats_as_nested_dict()", "empty_cache()"]
)
def test_a_plugin_without_statistics_says_so(minimal, raises, call):
    minimal("x = torch.ones(1, device='minimal')")
    with raises("NotImplementedError: device plugin"):
        minimal(f"m.{call}")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("1", "TypeError: fraction must be a float, but is 1"),
        ("1.5", "ValueError: fraction must be from 0 to 1, but is 1.5"),
        ("float('nan')", "ValueError: fraction must be from 0 to 1"),
        ("0.5", "NotImplementedError: device plugin"),
    ],
)
def test_memory_fraction_is_refused(minimal, raises, arguments, error):
    with raises(error):
        minimal(f"m.set_per_process_memory_fraction({arguments})")
    assert minimal("m.get_per_process_memory_fraction()") == 1.0


def test_memory_fraction_is_the_runtimes(minimal, raises):
    minimal("calls = []; m.runtime.set_memory_fraction = lambda *call: calls.append(call)")
    try:
        minimal("m.set_per_process_memory_fraction(0.25, 'minimal:1')")
        with raises("AcceleratorError"):
            minimal("m.set_per_process_memory_fraction(0.25, 2)")
        assert minimal("calls") == [[0.25, 1]]
        assert minimal("[m.get_per_process_memory_fraction(i) for i in (0, 1)]") == [1.0, 0.25]
    finally:
        minimal("del m.runtime.set_memory_fraction")


def test_summary():
    stats = {
        f"{stat}.{pool}.{metric}": value
        for stat, scale in (("allocated_bytes", 1 << 20), ("segment", 1))
        for pool, factor in (("all", 3), ("large_pool", 2), ("small_pool", 1))
        for metric, value in (
            ("current", 5 * factor * scale),
            ("peak", 6 * factor * scale),
            ("allocated", 7 * factor * scale),
            ("freed", 2 * factor * scale),
        )
    }
    text = summary({**stats, "num_ooms": 4}, torch.device("cpu", 1), abbreviated=False)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "cpu:1" in lines[0]
    assert lines[1] == "requests that failed: 4"
    assert lines[3] == "now peak in total freed"
    assert lines[4] == "Allocated memory 15 MiB 18 MiB 21 MiB 6144 KiB"
    assert lines[5] == "of large blocks 10 MiB 12 MiB 14 MiB 4096 KiB"
    assert lines[7] == "Reserved segments 15 18 21 6"
    assert len(lines) == 10
    assert len(summary(stats, torch.device("cpu"), abbreviated=True).splitlines()) == 6
