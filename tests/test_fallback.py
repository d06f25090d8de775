"""What happens without a kernel, on a device whose kernels are in Python."""

import pytest

PLUGIN = """
from minimal_plugin import *
import minimal_plugin
from devhost import hookimpl

@hookimpl
def devhost_kernels(registry):
    minimal_plugin.devhost_kernels(registry)
    registry.fallback()
"""

USE = """
import torch, warnings
x = torch.arange(4.0).to("minimal")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        y = torch.special.i0e(x)
print(y.cpu().sum().item() == torch.special.i0e(torch.arange(4.0)).sum().item())
print([str(w.message) for w in caught if "i0e" in str(w.message)])
print(torch.minimal.fallback_stats()["aten::special_i0e.out"])
torch.minimal.reset_fallback_stats()
print(torch.minimal.fallback_stats())
"""


@pytest.fixture
def device(site):
    site.add_package("minimal")
    for entry_points in site.root.glob("*.dist-info/entry_points.txt"):
        entry_points.write_text("[devhost.devices]\nminimal = falling_plugin\n")
    (site.root / "falling_plugin.py").write_text(PLUGIN)
    return site


def test_the_cpu_stands_in_and_is_counted(device):
    result = device.python(USE)
    assert result.stdout.splitlines() == ["True", "[]", "3", "{}"], result.stderr


def test_warn_says_it_once_per_operator(device):
    result = device.python(USE, DEVHOST_FALLBACK="warn")
    lines = result.stdout.splitlines()
    assert lines[0] == "True", result.stderr
    assert lines[1].count("aten::special_i0e") == 1
    assert lines[2] == "3"


def test_error_refuses_and_names_operator_and_device(device):
    result = device.python(USE, DEVHOST_FALLBACK="error")
    assert result.returncode == 1
    assert "NotImplementedError: The operator 'aten::special_i0e.out'" in result.stderr
    assert "minimal device" in result.stderr
    assert "DEVHOST_FALLBACK=error" in result.stderr


def test_a_policy_that_means_nothing_is_an_error(device):
    result = device.python("import torch; print('alive')", DEVHOST_FALLBACK="maybe")
    assert result.stdout == "alive\n"
    assert (
        "DEVHOST_FALLBACK=maybe is not a policy: it must be allow, warn or error" in result.stderr
    )


def test_written_arguments_come_back(device):
    result = device.python(
        """
        import torch
        x = torch.arange(4.0).to("minimal")
        y = x.neg_()
        print(y is x, x.cpu().tolist())
        out = torch.zeros(4, device="minimal")
        print(torch.exp2(torch.arange(4.0).to("minimal"), out=out) is out, out.cpu().tolist())
        """
    )
    assert result.stdout.splitlines() == [
        "True [-0.0, -1.0, -2.0, -3.0]",
        "True [1.0, 2.0, 4.0, 8.0]",
    ], result.stderr


def test_an_input_may_be_the_output(device):
    result = device.python(
        """
        import torch
        x = torch.arange(4.0).to("minimal")
        print(torch.special.i0e(x, out=x) is x, x.cpu())
        """
    )
    assert result.stdout == "True tensor([1.0000, 0.4658, 0.3085, 0.2430])\n", result.stderr


def test_what_the_fallback_needs_itself_has_no_fallback(device):
    result = device.python("import torch; torch.zeros(4, device='minimal').resize_(2)")
    assert result.stderr.splitlines()[-1] == (
        "NotImplementedError: The operator 'aten::resize_' has no kernel for the minimal device, "
        "and the fallback to the CPU needs it to move data: the device needs a kernel of its own "
        "for it."
    )


def test_running_statistics_come_back_though_the_schema_hides_the_write(device):
    result = device.python(
        """
        import torch
        x = torch.arange(6.0).reshape(3, 2)
        stats = {d: (torch.zeros(2).to(d), torch.ones(2).to(d)) for d in ("cpu", "minimal")}
        for d, (mean, var) in stats.items():
            torch.native_batch_norm(x.to(d), None, None, mean, var, True, 0.5, 1e-5)
        for mean, var in stats.values():
            print(mean.cpu().tolist(), var.cpu().tolist())
        """
    )
    on_cpu, on_device = result.stdout.splitlines()
    assert on_cpu == on_device == "[1.0, 1.5] [2.5, 2.5]", result.stderr


def test_without_a_kernel_on_the_cpu_either(device):
    result = device.python(
        """
        import torch
        x = torch.zeros(1, device="minimal")
        torch.ops.aten._resize_output_(x, [2], x.device)
        """
    )
    assert "'aten::_resize_output_' has no kernel for the minimal device, and the CPU has none" in (
        result.stderr
    )


def test_a_view_needs_a_kernel(device):
    result = device.python("import torch; torch.zeros(4, device='minimal').unfold(0, 2, 1)")
    assert "'aten::unfold' returns a view" in result.stderr


def test_a_control_must_be_complete(device):
    (device.root / "falling_plugin.py").write_text(
        PLUGIN.replace("registry.fallback()", "registry.fallback(object())")
    )
    result = device.python("import torch; print('alive')")
    assert result.stdout == "alive\n"
    assert "lacks set_fallback_policy, fallback_stats, reset_fallback_stats" in result.stderr


def test_autocast_of_the_cpu_is_not_for_the_device(device):
    result = device.python(
        """
        import torch
        total, left = torch.ones(3, 3).to("minimal"), torch.ones(2, 3, 3).to("minimal")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            product = torch.addbmm(total, left, left)
        print(product.dtype, product.cpu().unique().tolist(), torch.minimal.fallback_stats())
        """
    )
    assert result.stdout.split(" ", 2) == [
        "torch.float32",
        "[7.0]",
        "{'aten::addbmm': 1}\n",
    ], result.stderr
