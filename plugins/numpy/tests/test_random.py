"""Random numbers come from the device's own generator, and are the CPU's for the same seed."""

from __future__ import annotations

import pytest

DRAWS = [
    "torch.rand(5, device=device)",
    "torch.randn(3, 4, device=device)",
    "torch.rand_like(a)",
    "torch.randn(3, dtype=torch.bfloat16, device=device)",
    "torch.randint(0, 99, (7,), device=device)",
    "torch.randperm(9, device=device)",
    "torch.randperm(9, out=torch.empty(0, dtype=torch.int64, device=device))",
    "torch.bernoulli(a.sigmoid())",
    "torch.bernoulli(a.sigmoid(), out=torch.empty(0, device=device))",
    "a.bernoulli_(0.3)",
    "a.bernoulli_(b.sigmoid())",
    "a.T.uniform_(-1, 1)",
    "a[1:].normal_(2, 3)",
    "a.random_(5)",
    "a.random_(2, 9)",
    "index.random_()",
    "a.exponential_(2)",
    "a.cauchy_()",
    "a.geometric_(0.5)",
    "a.log_normal_()",
    "torch.normal(a, b.abs())",
    "torch.normal(a, 2.0)",
    "torch.normal(2.0, a.abs(), out=a)",
    "torch.multinomial(a.abs(), 2)",
    "torch.poisson(a.abs())",
    "torch.binomial(a.abs().ceil(), b.sigmoid())",
    "F.dropout(a, 0.3)",
    "F.dropout(a, 1.0)",
    "F.dropout(a.bfloat16(), 0.5)",
    "F.alpha_dropout(a, 0.3, training=True)",
    "F.rrelu(a, training=True)",
    "nn.init.kaiming_uniform_(a)",
    "nn.init.trunc_normal_(a)",
    "torch.distributions.Gamma(a.abs(), b.abs()).sample()",
    "torch.distributions.Dirichlet(a.abs()).sample()",
    "torch.distributions.Categorical(logits=a).sample()",
]


@pytest.mark.parametrize("draw", DRAWS)
def test_the_same_seed_draws_what_the_cpu_draws(device, draw):
    assert device(f"equal('(torch.manual_seed(3), {draw})[1]')") is True


@pytest.mark.parametrize("draw", DRAWS)
def test_the_device_leaves_the_generator_of_the_cpu_alone(device, draw):
    assert device(
        f"""
        names = on("ndarray", inputs(torch.float32))
        torch.manual_seed(1)
        states = torch.get_rng_state(), torch.ndarray.get_rng_state()
        drawn = eval({draw!r}, names)
        [torch.equal(torch.get_rng_state(), states[0]),
         torch.equal(torch.ndarray.get_rng_state(), states[1])]
        """
    ) == [True, "1.0" in draw]  # all or nothing needs no random number, but PyTorch may draw


def test_a_state_can_be_restored(device):
    assert device(
        """
        state = torch.ndarray.get_rng_state()
        first = torch.rand(4, device="ndarray").tolist()
        torch.rand(4)
        torch.ndarray.set_rng_state(state)
        again = torch.rand(4, device="ndarray").tolist()
        with torch.random.fork_rng([0], device_type="ndarray"):
            inside = torch.rand(4, device="ndarray").tolist()
        after = torch.rand(4, device="ndarray").tolist()
        [first == again, inside == after, first == after, torch.ndarray.initial_seed()]
        """
    ) == [True, True, False, 1]


def test_seeds_of_the_device(device):
    device("torch.ndarray.manual_seed(5); one = torch.rand(2, device='ndarray').tolist()")
    device("torch.ndarray.manual_seed_all(5); two = torch.rand(2, device='ndarray').tolist()")
    device("torch.manual_seed(5); three = torch.rand(2).tolist()")
    assert device("one == two == three and torch.ndarray.initial_seed() == 5")


def test_its_own_generator_may_be_given(device, raises):
    device("torch.ndarray.init(); own = torch.ndarray.default_generators[0].manual_seed(2)")
    assert device("torch.rand(2, device='ndarray', generator=own).tolist()") == device(
        "torch.rand(2, generator=torch.Generator().manual_seed(2)).tolist()"
    )
    with raises("RuntimeError: Expected a 'ndarray' device type for generator but found 'cpu'"):
        device("torch.rand(2, device='ndarray', generator=torch.Generator())")


def test_no_operator_with_a_generator_is_left_to_the_fallback(device):
    left = device(
        """
        from devhost_numpy.random import DRAWING
        left = []
        for name in torch._C._dispatch_get_registrations_for_dispatch_key("CPU"):
            if name.startswith("aten::") and name.removeprefix("aten::") not in DRAWING:
                operator = kernels.operator(name.removeprefix("aten::"))
                if any(a.name == "generator" for a in operator._schema.arguments):
                    left.append(name)
        sorted(left)
        """
    )
    assert left == []
