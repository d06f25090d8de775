"""Every operator of PyTorch's OpInfo does on the device what it does on the CPU."""

from __future__ import annotations

import itertools
import os

import pytest
import torch
from torch.utils._pytree import tree_leaves

from .forms import LAYOUTS, LAZY_BITS, plain, transformed, with_out
from .known_differences import UNDEFINED, known_difference
from .opinfo import (
    OPERATORS,
    DeterministicGuard,
    OpDTypes,
    TestCase,
    instantiate_device_type_tests,
    ops,
)
from .outcome import CPU, assert_same, run

# `make conformance` takes all of them.
SAMPLES = int(os.environ.get("OPENREG_CONFORMANCE", 3))  # of each operator, dtype and form

DTYPES = [
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32,
    torch.uint8, torch.bool, torch.complex64, torch.complex128,
]  # fmt: skip


# Those that the calls give are compared; the samples themselves are made with some more.
pytestmark = pytest.mark.filterwarnings("ignore")

torch.set_warn_always(True)  # not only for the first of the two runs


def operators(selection=lambda op: True, *, dtypes=OpDTypes.supported):
    """Parametrize with operators and their dtypes."""
    return ops([op for op in OPERATORS if selection(op)], dtypes=dtypes, allowed_dtypes=DTYPES)


def gradients_of(op, process):
    """Return a function that calls the operator and returns the gradients of its inputs."""

    def gradients(*arguments, **options):
        results = tree_leaves(process(op(*arguments, **options)))
        outputs = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
        leaves = tree_leaves((arguments, options))
        inputs = [t for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad]
        generator = torch.Generator().manual_seed(1)
        weights = [
            torch.rand(t.shape, dtype=t.dtype, generator=generator).to(t.device) for t in outputs
        ]
        if not outputs:
            return []
        return torch.autograd.grad(outputs, inputs, weights, allow_unused=True)

    return gradients


def full_name(op):
    """Return the operator's name with that of its variant, if it has any."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def defined(op, forms):
    """Leave out the forms of a call that have no right result on the CPU either."""
    return (form for form in forms if (full_name(op), form[0]) not in UNDEFINED)


class TestOperators(TestCase):
    def tearDown(self):
        # So many sizes come by that what is kept for the next tensor of each would add up.
        torch.accelerator.empty_cache()
        super().tearDown()

    def listed(self, op, dtype):
        """Return why the test is expected to find a difference, or None."""
        test = self._testMethodName.removeprefix("test_").partition(f"_{op.formatted_name}_")[0]
        return known_difference(test, full_name(op), str(dtype).removeprefix("torch."))

    def samples(self, op, dtype, *, requires_grad=False):
        """Yield the first samples with their names, or all if a difference is to be found."""
        limit = None if self.listed(op, dtype) else SAMPLES
        # op.sample_inputs() is the same, but seeds all devices before each sample, which is slow.
        torch.default_generator.manual_seed(0)
        samples = op.sample_inputs_func(op, "cpu", dtype, requires_grad)
        for i, sample in enumerate(itertools.islice(samples, limit)):
            yield f"sample {i}", sample

    def check(self, op, dtype, calls):
        """Compare the outcomes of all calls: (what it is, function, arguments, options)."""
        reason = self.listed(op, dtype)
        device = torch.device(self.get_primary_device())
        # Uninitialised memory has a value only so; an error may leave some in what it was to fill.
        failing = self._testMethodName.startswith("test_error_")
        uninitialised = failing or "empty" in op.name or "resize" in op.name
        for what, function, arguments, options in calls:
            with DeterministicGuard(uninitialised):
                expected = run(function, arguments, options, CPU)
                actual = run(function, arguments, options, device)
            try:
                assert_same(actual, expected, device)
            except AssertionError as error:
                if reason is not None:
                    return
                raise AssertionError(f"{what}: {error}") from actual.error or error
        assert reason is None, f"no difference any more, although listed: {reason}"

    @operators()
    def test_result(self, device, dtype, op):
        self.check(op, dtype, ((n, op, *plain(s)) for n, s in self.samples(op, dtype)))

    @operators(
        lambda op: op.supports_autograd and op.supported_backward_dtypes("cpu"),
        dtypes=OpDTypes.supported_backward,
    )
    def test_gradient(self, device, dtype, op):
        calls = (
            (n, gradients_of(op, s.output_process_fn_grad), *plain(s))
            for n, s in self.samples(op, dtype, requires_grad=True)
        )
        self.check(op, dtype, calls)

    @operators(lambda op: op.inplace_variant is not None)
    def test_in_place(self, device, dtype, op):
        calls = (
            (f"{n}, {form}", op.inplace_variant, *rest)
            for n, s in self.samples(op, dtype)
            for form, *rest in defined(op, [("as it is", *plain(s)), *transformed(s, LAYOUTS)])
        )
        self.check(op, dtype, calls)

    @operators(lambda op: op.supports_out)
    def test_out(self, device, dtype, op):
        calls = (
            (f"{n}, {form} out", op, *rest)
            for n, s in self.samples(op, dtype)
            for form, *rest in defined(op, with_out(op, s))
        )
        self.check(op, dtype, calls)

    @operators()
    def test_layout(self, device, dtype, op):
        calls = (
            (f"{n}, {form}", op, *rest)
            for n, s in self.samples(op, dtype)
            for form, *rest in defined(op, transformed(s, LAYOUTS))
        )
        self.check(op, dtype, calls)

    @operators()
    def test_lazy_bits(self, device, dtype, op):
        calls = (
            (f"{n}, {form}", op, *rest)
            for n, s in self.samples(op, dtype)
            for form, *rest in defined(op, transformed(s, LAZY_BITS))
        )
        self.check(op, dtype, calls)

    @operators(lambda op: op.error_inputs_func is not None)
    def test_error(self, device, dtype, op):
        calls = (
            (f"error input {i}", op, *plain(error.sample_input))
            for i, error in enumerate(op.error_inputs_func(op, "cpu"))
        )
        self.check(op, dtype, calls)


instantiate_device_type_tests(TestOperators, globals(), only_for="openreg")
# Without the device there would be no test at all, and no failure.
assert "TestOperatorsPRIVATEUSE1" in globals() or "TestOperatorsOPENREG" in globals()
