"""Every random operator of PyTorch, in every form, draws the CPU's numbers and moves nobody else's.

The operators come from PyTorch's own records: the ones it tags as drawing random numbers, and the
OpInfo samples that move the CPU's generator.
"""

import contextlib
import itertools
import warnings

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

with warnings.catch_warnings():
    warnings.simplefilter("ignore", ImportWarning)  # about hypothesis, which is optional
    from torch.testing._internal.common_methods_invocations import op_db

DEVICES = ("cpu", "openreg")
KERNELS = (
    "CPU",
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)
# Tagged as random because of a dropout inside them; tested as modules in test_random.py.
COMPOSED = {
    "_fused_sdp_choice",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_fused_attention_overrideable",
    "gru",
    "lstm",
    "rnn_relu",
    "rnn_tanh",
    "scaled_dot_product_attention",
}


def runs_on_cpu(operator):
    names = {operator.name(), operator.name().partition(".")[0]}  # out= forms call the others
    return all(
        any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in KERNELS)
        for name in names
        if torch._C._dispatch_has_kernel(name)
    )


def random_operators():
    """Yield every overload that PyTorch tags as random and can run on the CPU."""
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if namespace != "aten" or base in COMPOSED:
            continue
        operator = getattr(getattr(torch.ops.aten, base), overload or "default")
        if torch.Tag.nondeterministic_seeded in operator.tags and runs_on_cpu(operator):
            yield operator


OPERATORS = {operator.name().removeprefix("aten::"): operator for operator in random_operators()}

PROBABILITIES = torch.linspace(0.1, 0.9, 36).reshape(4, 9)
BY_NAME = {
    "count": torch.full((4, 9), 20.0),
    "prob": PROBABILITIES,
    "noise": torch.zeros(4, 9),
    "size": [4, 9],
    "n": 33,
    "low": 3,
    "high": 50,
    "from": 3,
    "to": 50,
    "num_samples": 5,
    "train": True,
    "dropout_p": 0.5,
    "training": True,
}

OUT = {"aten::multinomial": ((4, 5), torch.int64), "aten::randperm": ((33,), torch.float32)}


def argument_for(operator, argument, device):
    base = operator.name().partition(".")[0]
    kind = str(argument.type)
    if argument.is_out:
        size, dtype = OUT.get(base, ((4, 9), torch.float32))
        dtype = torch.bool if argument.name == "out1" else dtype  # native_dropout's mask
        return torch.empty(size, dtype=dtype, device=device)
    if argument.name == "p" or argument.name in ("mean", "std"):
        return PROBABILITIES.to(device) if kind == "Tensor" else 0.3
    if argument.name in BY_NAME:
        value = BY_NAME[argument.name]
        if isinstance(value, torch.Tensor):
            return value.to(device, copy=True)
        return torch.tensor(value) if kind == "Tensor" else value  # PyTorch wants it on the CPU
    assert kind == "Tensor", f"no value for {argument.name} of {operator}"
    self = -PROBABILITIES if "rrelu" in base else PROBABILITIES
    return self.to(device, copy=True)


def call(operator, device, generator=None):
    """Call an operator with fitting arguments and return its results as a list."""
    positional, named = [], {}
    for argument in operator._schema.arguments:
        if argument.name == "generator":
            value = generator
        elif argument.name == "device":
            value = torch.device(device)
        elif argument.has_default_value() and argument.name not in BY_NAME:
            continue
        else:
            value = argument_for(operator, argument, device)
        if argument.kwarg_only or argument.has_default_value():
            named[argument.name] = value
        else:
            positional.append(value)
    results = operator(*positional, **named)
    return [results] if isinstance(results, torch.Tensor) else list(results)


def assert_same_bits(results, expected):
    assert len(results) == len(expected)
    for result, want in zip(results, expected, strict=True):
        assert (result.device.type, want.device.type) == ("openreg", "cpu")
        assert (result.dtype, result.shape) == (want.dtype, want.shape)
        # NaN equals NaN here, which is all that torch.equal would refuse.
        torch.testing.assert_close(result.cpu(), want, rtol=0, atol=0, equal_nan=True)


def test_the_operators_are_found():
    assert {
        "rand",
        "randperm.generator_out",
        "native_dropout",
        "rrelu_with_noise_",
        "poisson.out",
        "normal.float_Tensor_out",
        "randint_like.Tensor",
        "uniform_",
    } <= OPERATORS.keys()
    assert len(OPERATORS) > 100


@pytest.mark.parametrize("name", OPERATORS)
def test_default_generator(name):
    torch.manual_seed(11)
    start, other = torch.get_rng_state(), torch.openreg.get_rng_state(1)
    results = call(OPERATORS[name], "openreg")
    assert torch.equal(start, torch.get_rng_state())  # the CPU's generator has not moved
    assert torch.equal(other, torch.openreg.get_rng_state(1))

    here = torch.openreg.get_rng_state(0)
    expected = call(OPERATORS[name], "cpu")
    assert torch.equal(here, torch.openreg.get_rng_state(0))  # nor this one because of the CPU
    assert_same_bits(results, expected)
    # Both have moved, as far as each other.
    assert not torch.equal(start, here)
    assert torch.equal(torch.get_rng_state(), here)


@pytest.mark.parametrize(
    "name",
    [n for n, o in OPERATORS.items() if any(a.name == "generator" for a in o._schema.arguments)],
)
def test_own_generator(name):
    own = {device: torch.Generator(device).manual_seed(5) for device in DEVICES}
    before = torch.get_rng_state(), *torch.openreg.get_rng_state_all()
    results, expected = (call(OPERATORS[name], device, own[device]) for device in DEVICES[::-1])
    assert_same_bits(results, expected)
    assert torch.equal(own["cpu"].get_state(), own["openreg"].get_state())
    after = torch.get_rng_state(), *torch.openreg.get_rng_state_all()
    assert all(map(torch.equal, before, after))

    for device in ("cpu", "openreg:1"):
        with pytest.raises(RuntimeError, match="generator"):
            call(OPERATORS[name], "openreg:0", torch.Generator(device))
    with pytest.raises(
        RuntimeError, match=r"Expected a 'cpu' (device type for generator|generator)"
    ):
        call(OPERATORS[name], "cpu", own["openreg"])


class Draws(TorchDispatchMode):
    """Notes whether a random operator is called."""

    noted = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.noted |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def samples_that_draw(op):
    """Yield those of an OpInfo entry's samples for which it calls a random operator."""
    dtype = next((d for d in (torch.float32, torch.int64, torch.complex64) if d in op.dtypes), None)
    if dtype is None:
        return
    found = False
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
        with Draws() as draws, contextlib.suppress(Exception):  # a sample that the CPU refuses
            op(*positional(sample), **sample.kwargs)
        if draws.noted:
            yield sample
        found |= draws.noted
        if number == 4 and not found:  # an entry that draws does so in one of its first samples
            return


def positional(sample):
    return (sample.input, *sample.args)


def forms(op):
    """Return the functions that an OpInfo entry tests, by the name of the form."""
    found = {"function": op.op, "method": op.method_variant, "in place": op.inplace_variant}
    if op.supports_out:
        found["out="] = lambda *a, **k: op.op(*a, **k, out=torch.empty_like(op.op(*a, **k)))
    return {form: function for form, function in found.items() if function is not None}


def on(device, value):
    """Return a copy of a sample's argument on a device."""
    if isinstance(value, torch.Tensor):
        return value.to(device, copy=True)
    if isinstance(value, (list, tuple)):
        return type(value)(on(device, item) for item in value)
    return value


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in tensors(item)] if isinstance(value, (list, tuple)) else []


def outcome(function, sample, device):
    """Return what a form gives for a sample: a list of tensors, or the error that it raises."""
    torch.manual_seed(3)
    arguments = [on(device, value) for value in positional(sample)]
    options = {name: on(device, value) for name, value in sample.kwargs.items()}
    if "device" in options:
        options["device"] = device
    try:
        with torch.device(device):  # factories have no tensor that says where
            return tensors(function(*arguments, **options))
    except Exception as error:
        return type(error)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.filterwarnings("ignore:torch.qr is deprecated")  # what makes an entry's samples
def test_opinfo_entries_that_draw():
    tried, wrong = set(), []
    for op in op_db:
        for sample, (form, function) in itertools.product(samples_that_draw(op), forms(op).items()):
            result, expected = (outcome(function, sample, device) for device in DEVICES[::-1])
            tried.add(op.name)
            if isinstance(expected, type):
                same = result is expected  # the form cannot take this sample
            else:
                same = len(result) == len(expected) and all(map(equal, result, expected))
            if not same:
                wrong.append((op.name, form, sample.summary(), result, expected))
    assert wrong == []
    assert {
        "bernoulli",
        "nn.functional.dropout",
        "multinomial",
        "randint_like",
        "rand_like",
    } < tried
    assert len(tried) > 20


def equal(result, expected):
    return result.device.type == "openreg" and torch.equal(result.cpu(), expected)
