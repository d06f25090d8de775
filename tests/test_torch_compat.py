"""What this project believes about PyTorch is still true of the installed version."""

import pytest
from packaging.version import Version

from devhost import DeviceInfo, torch_compat


@pytest.fixture(scope="module")
def run(module_site):
    with module_site.interpreter(TORCH_DEVICE_BACKEND_AUTOLOAD="0") as interpreter:
        interpreter("import torch; from devhost import torch_compat")
        yield interpreter


def test_in_tree_devices_are_those_that_torch_names(run, raises):
    with raises("RuntimeError: Expected one of") as caught:
        run("torch.device('nonesuch')")
    named = str(caught.value).partition("one of ")[2].partition(" device type")[0].split(", ")
    assert set(named) == torch_compat.IN_TREE_DEVICES


def test_another_version_is_asked_for_its_devices(run):
    run("from unittest import mock")
    other = "mock.patch.multiple(torch_compat, IN_TREE_DEVICES=(), IN_TREE_DEVICES_OF='0.1.')"
    run(f"with {other}: found = [list(torch_compat.name_collisions(n)) for n in ('opengl', 'npu')]")
    assert run("found") == [["'opengl' is one of PyTorch's own device types"], []]


def test_every_loader_prefix_is_a_device_with_a_loader(run):
    tags = run(
        "[d.args[0] for _, _, d in torch.serialization._package_registry if hasattr(d, 'args')]"
    )
    assert set(tags) - {"privateuse1"} <= set(torch_compat.LOADER_PREFIXES)
    assert set(torch_compat.LOADER_PREFIXES) < torch_compat.IN_TREE_DEVICES


def test_slot(run):
    assert run("torch_compat.slot_name()") == torch_compat.UNUSED_SLOT


def test_version_class_is_what_torch_compares_with(run):
    assert run("torch_compat.torch_version()[0] == torch.__version__")
    assert run("torch_compat.torch_version()[1]('2.9') < torch_compat.torch_version()[1]('2.13')")


def test_operators(run):
    assert run("torch_compat.operator_exists('aten::add.Tensor')") is True
    assert run("torch_compat.operator_exists('aten::add.Tensro')") is False
    assert run("torch_compat.has_kernel('aten::to.dtype', 'CompositeImplicitAutograd')") is True
    assert run("torch_compat.has_kernel('aten::add.Tensor', 'CompositeImplicitAutograd')") is False
    assert run("torch_compat.has_fallback('AutocastCPU')") is True
    assert run("torch_compat.has_fallback('AutocastPrivateUse1')") is False


@pytest.mark.parametrize(
    ("fields", "running", "problem"),
    [
        ({}, "2.13.0", None),
        ({}, "2.13.0+cpu", None),
        ({}, "2.15.1", None),
        ({}, "2.9.1", "it needs torch 2.13 or newer"),  # as text, 2.9 would be the newer one
        ({"torch_before": "2.15"}, "2.14.3", None),
        ({"torch_before": "2.15"}, "2.15.0", "it supports torch before 2.15"),
        ({"built_for_torch": "2.13.0"}, "2.13.2+cu130", None),
        ({"built_for_torch": "2.13.0"}, "2.14.0", "was built for torch 2.13.0, and this is torch"),
        ({"built_for_torch": "two"}, "2.13.0", "built_for_torch 'two' is not a version"),
    ],
)
def test_versions(fields, running, problem):
    info = DeviceInfo(name="example", description="", **fields)
    problems = list(torch_compat.version_problems(info, running, Version))
    if problem is None:
        assert problems == []
    else:
        (found,) = problems
        assert problem in found
