"""The numbers that operators and modules draw are the CPU's for the same seed.

That holds for every random operator of PyTorch in test_random_operators.py; here are sizes, types,
strides, and the modules made of them. Seeds and states are in test_generators.py.
"""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

DEVICES = ("openreg", "cpu")


def same_bits(function, seed=7):
    """Assert that a function of the device gives the same tensors on the device and on the CPU."""
    results = []
    for device in DEVICES:
        torch.manual_seed(seed)
        result = function(device)
        results.append([r.cpu() for r in ([result] if torch.is_tensor(result) else result)])
    assert len(results[0]) == len(results[1])
    assert all(map(torch.equal, *results))


@pytest.mark.parametrize("size", [0, 1, 8, 15, 16, 17, 100, 1 << 16])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_size_and_type(size, dtype):
    # normal_ draws blocks of 16 from that size on, and pairs below.
    same_bits(lambda d: torch.randn(size, device=d, dtype=dtype))
    same_bits(lambda d: torch.rand(size, device=d, dtype=dtype))
    same_bits(lambda d: torch.empty(size, device=d, dtype=dtype).log_normal_())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers(dtype):
    same_bits(lambda d: torch.empty(50, device=d, dtype=dtype).random_())
    same_bits(
        lambda d: torch.randint(-9 if dtype.is_signed else 0, 99, (50,), device=d, dtype=dtype)
    )
    same_bits(lambda d: torch.randperm(100, device=d, dtype=dtype))


def test_views_and_strides():
    same_bits(lambda d: torch.zeros(8, 9, device=d)[1::2, ::3].normal_())
    same_bits(lambda d: torch.zeros(8, 9, device=d).t().uniform_())
    same_bits(lambda d: torch.zeros(4, 5, device=d, dtype=torch.complex64).normal_())

    def part(device):
        whole = torch.zeros(8, 9, device=device)
        whole[2:4].exponential_()
        return whole

    same_bits(part)


def test_a_sequence_of_different_draws():
    def draw(device):
        return [
            torch.randn(3, device=device),  # leaves the second half of a pair in the state
            torch.rand(5, device=device),
            torch.randn(1, device=device, dtype=torch.float64),
            torch.randperm(9, device=device),
            torch.randn(33, device=device),
            torch.bernoulli(torch.full((7,), 0.5, device=device)),
        ]

    same_bits(draw)


# ---- Modules and functions made of random operators ----


DROPOUTS = {
    "dropout": (nn.Dropout(0.3), (4, 6)),
    "dropout in place": (nn.Sequential(nn.Identity(), nn.Dropout(0.3, inplace=True)), (4, 6)),
    "dropout1d": (nn.Dropout1d(0.3), (2, 3, 4)),
    "dropout2d": (nn.Dropout2d(0.3), (2, 3, 4, 4)),
    "dropout3d": (nn.Dropout3d(0.3), (2, 3, 2, 2, 2)),
    "alpha dropout": (nn.AlphaDropout(0.3), (4, 6)),
    "feature alpha dropout": (nn.FeatureAlphaDropout(0.3), (2, 3, 4)),
    "rrelu": (nn.RReLU(), (4, 6)),
    "nothing dropped": (nn.Dropout(0.0), (4, 6)),
    "all dropped": (nn.Dropout(1.0), (4, 6)),
}


@pytest.mark.parametrize("name", DROPOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_and_its_gradient(name, dtype):
    module, size = DROPOUTS[name]
    values = torch.randn(size, generator=torch.Generator().manual_seed(0)).to(dtype)

    def run(device):
        leaf = values.to(device).requires_grad_()
        output = module(leaf * 1)
        output.square().sum().backward()
        return output.detach(), leaf.grad

    same_bits(run)


@pytest.mark.parametrize("p", [0.1, 0.15, 0.2, 0.35, 0.5, 0.6, 0.7, 0.9, 0.95])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_rate_of_dropout_rounds_as_on_the_cpu(p, dtype):
    values = torch.linspace(0.5, 3, 99, dtype=dtype)

    def run(device):
        leaf = values.to(device).requires_grad_()
        output = functional.dropout(leaf, p)
        output.square().sum().backward()
        return output.detach(), leaf.grad

    same_bits(run)


def test_dropout_can_be_differentiated_twice():
    def run(device):
        leaf = torch.linspace(0.5, 3, 9, device=device).requires_grad_()
        output = functional.dropout(leaf, 0.3).pow(3).sum()
        (first,) = torch.autograd.grad(output, leaf, create_graph=True)
        return torch.autograd.grad(first.sum(), leaf)

    same_bits(run)


def test_dropout_in_evaluation_draws_nothing():
    x = torch.ones(4, device="openreg")
    before = torch.openreg.get_rng_state()
    assert torch.equal(nn.Dropout(0.5).eval()(x), x)
    assert torch.equal(before, torch.openreg.get_rng_state())


RECURRENT = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}


@pytest.mark.parametrize("kind", RECURRENT)
def test_dropout_between_recurrent_layers(kind):
    torch.manual_seed(0)
    module = RECURRENT[kind](3, 4, num_layers=3, dropout=0.5)
    inputs = torch.randn(5, 2, 3)
    torch.manual_seed(7)  # both generators, of which each run moves its own
    outputs = [copy.deepcopy(module).to(d)(inputs.to(d))[0].cpu() for d in DEVICES]
    torch.testing.assert_close(*outputs)
    assert torch.equal(torch.openreg.get_rng_state(), torch.get_rng_state())  # as many draws


@pytest.mark.parametrize("causal", [False, True])
def test_dropout_in_attention(causal):
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, 2, 5, 8, generator=generator) for _ in range(3))

    def run(device):
        inputs = [x.to(device).requires_grad_() for x in (query, key, value)]
        output = functional.scaled_dot_product_attention(*inputs, dropout_p=0.4, is_causal=causal)
        output.sum().backward()
        return [output.detach(), *(x.grad for x in inputs)]

    same_bits(run)


def test_pooling_of_random_regions():
    image = torch.rand(2, 3, 9, 9, generator=torch.Generator().manual_seed(0))
    same_bits(lambda d: functional.fractional_max_pool2d(image.to(d), 2, output_ratio=(0.5, 0.5)))


@pytest.mark.parametrize(
    "name", ["xavier_uniform_", "kaiming_normal_", "trunc_normal_", "orthogonal_"]
)
def test_initialisation(name):
    same_bits(lambda d: getattr(nn.init, name)(torch.empty(6, 5, device=d)))


def test_distributions():
    from torch import distributions

    for make in (
        lambda d: distributions.Gamma(torch.full((9,), 0.7, device=d), torch.ones(9, device=d)),
        lambda d: distributions.Dirichlet(torch.full((9,), 0.7, device=d)),
        lambda d: distributions.Categorical(torch.ones(9, device=d)),
        lambda d: distributions.Poisson(torch.full((9,), 3.0, device=d)),
        lambda d: distributions.Binomial(
            torch.full((9,), 9.0, device=d), torch.full((9,), 0.3, device=d)
        ),
        lambda d: distributions.StudentT(torch.full((9,), 3.0, device=d)),
        lambda d: distributions.VonMises(torch.zeros(9, device=d), torch.ones(9, device=d)),
    ):
        same_bits(lambda d, make=make: make(d).sample((4,)))
