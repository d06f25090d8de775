"""Registering kernels."""

import pytest


@pytest.fixture(scope="module")
def run(module_site):
    with module_site.interpreter(TORCH_DEVICE_BACKEND_AUTOLOAD="0") as interpreter:
        interpreter(
            """
            import gc, torch
            from devhost import KernelRegistry
            registry = KernelRegistry("hosttest")
            has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
            """
        )
        yield interpreter


def test_define_and_impl(run):
    assert run("registry.define('hosttest::twice(Tensor x) -> Tensor')") == "hosttest::twice"
    run("registry.impl('hosttest::twice', lambda x: x + x, 'CPU')")
    run("gc.collect()")  # the registration lives as long as the registry
    assert run("torch.ops.hosttest.twice(torch.tensor([3])).tolist()") == [6]
    assert run("registry.operators['CPU']") == ["hosttest::twice"]


def test_alias_analysis_is_passed_on(run, raises):
    schema = "'hosttest::careful(Tensor x) -> Tensor'"
    assert run(f"registry.define({schema}, 'CONSERVATIVE')") == "hosttest::careful"
    with raises("RuntimeError"):
        run("registry.define('hosttest::odd(Tensor x) -> Tensor', 'RECKLESS')")


def test_impl_is_for_the_device_unless_told_otherwise(run):
    run("registry.impl('aten::mul.Tensor', lambda a, b: a)")
    assert run("has_kernel('aten::mul.Tensor', 'PrivateUse1')") is True


def test_impl_takes_an_overload(run):
    run("registry.impl(torch.ops.aten.neg.default, lambda a: a)")
    run("registry.impl(torch.ops.aten.div.Tensor, lambda a, b: a)")
    assert run("has_kernel('aten::neg', 'PrivateUse1')") is True
    assert run("has_kernel('aten::div.Tensor', 'PrivateUse1')") is True


def test_unknown_operator_names_the_nearest(run, raises):
    with raises(
        "KernelRegistrationError: there is no operator aten::sub.Tensro; did you mean "
        r"aten::sub.Tensor\?"
    ):
        run("registry.impl('aten::sub.Tensro', lambda a, b: a)")


@pytest.mark.parametrize("name", ["add.Tensor", "::add", "aten::", ""])
def test_name_without_namespace(run, raises, name):
    with raises("KernelRegistrationError: .* has no namespace"):
        run(f"registry.impl({name!r}, lambda a, b: a)")


def test_schema_without_namespace(run, raises):
    with raises("KernelRegistrationError: .* has no namespace"):
        run("registry.define('twice(Tensor x) -> Tensor')")


def test_second_kernel_for_an_operator(run, raises):
    run("registry.impl('aten::abs', lambda a: a)")
    with raises(r".*aten::abs has two kernels for PrivateUse1: .*<lambda>.* and .*<lambda>"):
        run("registry.impl('aten::abs', lambda a: a)")


def test_composite_operator_is_refused_with_an_explanation(run, raises):
    with raises("KernelRegistrationError: .*aten::conv2d.*CompositeImplicitAutograd.*derivative"):
        run("registry.impl('aten::conv2d', lambda *arguments: None)")
    assert run("has_kernel('aten::conv2d', 'PrivateUse1')") is False


def test_composite_operator_with_a_derivative_of_its_own_is_accepted(run):
    run("registry.impl('aten::conv2d', lambda *arguments: None, 'AutogradPrivateUse1')")
    run("registry.impl('aten::conv2d', lambda *arguments: None)")
    assert run("has_kernel('aten::conv2d', 'PrivateUse1')") is True


def test_composite_operator_with_a_derivative_of_pytorch_is_accepted(run):
    run("registry.impl('aten::linear', lambda *arguments: None)")
    assert run("has_kernel('aten::linear', 'PrivateUse1')") is True


def test_load(run, raises):
    assert run("registry.load('json.tool').__name__") == "json.tool"
    assert run("registry.native_modules") == ["json.tool"]
    with raises("ModuleNotFoundError: No module named 'no_such_module'"):
        run("registry.load('no_such_module')")


def test_load_refuses_a_module_that_registers_composite_operators(run, raises, module_site):
    # Whether a module registers from C++ or from Python makes no difference to the dispatcher.
    (module_site.root).mkdir(exist_ok=True)
    (module_site.root / "composite_kernels.py").write_text(
        "import torch\n"
        "library = torch.library.Library('aten', 'IMPL')\n"
        "library.impl('flatten.using_ints', lambda a, *b: a, 'PrivateUse1')\n"
    )
    with raises("KernelRegistrationError: composite_kernels registers aten::flatten.using_ints"):
        run("registry.load('composite_kernels')")
    run("import sys; sys.modules.pop('composite_kernels').library._destroy()")


def test_discard_takes_everything_back(run):
    run("registry.impl('aten::cos', lambda a: a)")
    run("before = has_kernel('aten::cos', 'PrivateUse1'); registry.discard()")
    assert run("[before, has_kernel('aten::cos', 'PrivateUse1')]") == [True, False]
    assert run("registry.operators") == {}
    assert run("has_kernel('aten::add.Tensor', 'CPU')") is True
