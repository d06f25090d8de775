"""Read into the device's interpreter: evaluates expressions there and on the CPU, and compares."""

# What is not used here is used by the expressions.
import copy  # noqa: F401
import gc  # noqa: F401
import io  # noqa: F401
import weakref  # noqa: F401

import torch
import torch.nn.functional as F  # noqa: F401, N812
from torch import nn  # noqa: F401
from torch.utils._pytree import tree_flatten

from devhost_numpy import kernels

CALLED = set()  # names of the operators that the tables of NumPy functions have computed

original_call = kernels._Kernel.__call__


def recording_call(self, *arguments, **options):
    CALLED.add(self._operator.name().removeprefix("aten::"))
    return original_call(self, *arguments, **options)


kernels._Kernel.__call__ = recording_call


def numbers(dtype, *size):
    """Return numbers that differ, none of them zero, from -3 to 3 where there are negative ones."""
    generator = torch.Generator().manual_seed(sum(size))
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(size, dtype=torch.float64, generator=generator).to(dtype)
    drawn = torch.randint(1, 4, size, generator=generator)
    sign = torch.randint(0, 2, size, generator=generator) * 2 - 1
    return (drawn if dtype == torch.uint8 else drawn * sign).to(dtype)


def inputs(dtype):
    """Return the names that expressions may use, with values on the CPU."""
    a = numbers(dtype, 3, 4)
    return {
        "a": a,
        "b": numbers(dtype, 4, 3).T,  # not contiguous
        "row": numbers(dtype, 4),
        "column": numbers(dtype, 3, 1),
        "number": numbers(dtype),
        "none": numbers(dtype, 0, 4),
        "every": numbers(dtype, 6, 8)[::2, ::2],  # (3, 4), with gaps
        "square": numbers(dtype, 3, 3),
        "batch": numbers(dtype, 2, 3, 4),
        "mask": torch.tensor([[True, False, True, False]] * 3),
        "index": torch.tensor([2, 0, 2]),
        "dtype": dtype,
    }


def on(device, names):
    """Return the same names with copies of the tensors on a device."""
    moved = {
        name: value.clone(memory_format=torch.preserve_format).to(device)
        if isinstance(value, torch.Tensor)
        else value
        for name, value in names.items()
    }
    return {**globals(), **moved, "device": device}


def results(expression, device, names):
    """Evaluate an expression; return its tensors on the CPU, and everything else as it is."""
    found = tree_flatten(eval(expression, on(device, names)))[0]
    for value in found:
        if isinstance(value, torch.Tensor):
            assert value.device.type == device, value.device
    return [value.detach().cpu() if isinstance(value, torch.Tensor) else value for value in found]


def equal(expression, dtype="float32", **tolerance):
    """Return True, or how the device's results differ from the CPU's."""
    names = inputs(getattr(torch, dtype))
    expected = results(expression, "cpu", names)
    got = results(expression, "ndarray", names)
    try:
        torch.testing.assert_close(got, expected, equal_nan=True, **tolerance)
    except AssertionError as error:
        return str(error)
    return True


def gradients_equal(expression, inputs_of_it="a b row column square batch"):
    """Compare the gradients of all inputs, in float64."""
    gradients = {}
    for device in ("cpu", "ndarray"):
        names = on(device, inputs(torch.float64))
        leaves = [names[name].requires_grad_() for name in inputs_of_it.split()]
        torch.manual_seed(0)  # for the initial weights of modules, and for dropout
        result = eval(expression, names)
        weights = torch.arange(1.0, result.numel() + 1, dtype=result.dtype).reshape(result.shape)
        (result * weights.to(device)).sum().backward()
        gradients[device] = [None if x.grad is None else x.grad.cpu() for x in leaves]
    used = [grad is not None for grad in gradients["cpu"]]
    if not any(used):
        return "no input has a gradient"
    try:
        torch.testing.assert_close(gradients["ndarray"], gradients["cpu"])
    except AssertionError as error:
        return str(error)
    return True
