"""Operators of the device's own, and what runs without a kernel of its own."""

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

import devhost


def test_an_operator_from_cpp():
    x = torch.randn(4, 6, dtype=torch.double, device="openreg", requires_grad=True)
    bias = torch.randn(6, dtype=torch.double, device="openreg", requires_grad=True)
    result = torch.ops.openreg.bias_gelu(x, bias)
    assert result.device == x.device
    assert_close(result, functional.gelu(x + bias))
    assert torch.autograd.gradcheck(torch.ops.openreg.bias_gelu, (x, bias))
    with pytest.raises(RuntimeError, match="expected a bias of shape"):
        torch.ops.openreg.bias_gelu(x, bias[:2])


def test_an_operator_from_python():
    x = torch.tensor([0.4, 1.6, -2.7], device="openreg", requires_grad=True)
    result = torch.ops.openreg.round_ste(x)
    assert result.tolist() == [0, 2, -3]
    (result * torch.tensor([1.0, 2.0, 3.0], device="openreg")).sum().backward()
    assert x.grad.tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["bias_gelu", "round_ste"])
def test_both_compile(name):
    x = torch.randn(3, 5, device="openreg", requires_grad=True)
    extra = (torch.randn(5, device="openreg"),) if name == "bias_gelu" else ()
    operator = getattr(torch.ops.openreg, name)

    def function(x):
        return operator(x, *extra) * 2

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    assert_close(compiled(x), function(x))
    (want,) = torch.autograd.grad(function(x).sum(), x)
    (got,) = torch.autograd.grad(compiled(x).sum(), x)
    assert_close(got, want)


def test_a_kernel_from_python_takes_the_place_of_a_compiled_one():
    x = torch.ones(3, device="openreg")
    registry = devhost.KernelRegistry("openreg")
    registry.impl("aten::mul.Tensor", lambda a, b: torch.full_like(a, 42.0))
    try:
        assert (x * x).tolist() == [42, 42, 42]
    finally:
        registry.discard()
    assert (x * x).tolist() == [1, 1, 1]


def test_fallbacks_are_counted():
    torch.openreg.reset_fallback_stats()
    x = torch.ones(4, device="openreg")
    torch.special.i0e(x)
    torch.special.i0e(x)
    (x + x).exp().sum()  # kernels of their own
    assert torch.openreg.fallback_stats() == {"aten::special_i0e": 2}


def test_fallback_policy(fresh):
    code = """
import torch
x = torch.ones(4, device="openreg")
for _ in range(3):
    torch.special.i0e(x)
"""
    process = fresh(code, DEVHOST_FALLBACK="warn")
    assert process.returncode == 0
    assert process.stderr.count("i0e") == 1
    process = fresh(code, DEVHOST_FALLBACK="error")
    assert process.returncode == 1
    assert "NotImplementedError: The operator 'aten::special_i0e'" in process.stderr
