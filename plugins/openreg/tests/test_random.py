"""The device's own generators: the CPU's numbers for the same seed, and nobody else's state."""

import pytest
import torch
from torch.nn import functional

DRAWS = {
    "rand": lambda d: torch.rand(33, device=d),
    "randn": lambda d: torch.randn(33, device=d),
    "randint": lambda d: torch.randint(0, 99, (33,), device=d),
    "randperm": lambda d: torch.randperm(33, device=d),
    "normal": lambda d: torch.normal(torch.zeros(33, device=d), 2.0),
    "bernoulli": lambda d: torch.full((33,), 0.3, device=d).bernoulli(),
    "bernoulli_": lambda d: torch.empty(33, device=d).bernoulli_(0.3),
    "multinomial": lambda d: torch.ones(9, device=d).multinomial(5),
    "exponential_": lambda d: torch.empty(33, device=d).exponential_(),
    "cauchy_": lambda d: torch.empty(33, device=d).cauchy_(),
    "geometric_": lambda d: torch.empty(33, device=d).geometric_(0.3),
    "log_normal_": lambda d: torch.empty(33, device=d).log_normal_(),
    "poisson": lambda d: torch.poisson(torch.full((33,), 3.0, device=d)),
    "dropout": lambda d: functional.dropout(torch.ones(33, device=d), 0.3),
    "rrelu": lambda d: functional.rrelu(-torch.ones(33, device=d), training=True),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_the_same_seed_gives_the_cpus_numbers(draw):
    torch.manual_seed(7)
    here = draw("openreg")
    torch.manual_seed(7)
    assert torch.equal(here.cpu(), draw("cpu"))


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_drawing_moves_only_the_devices_own_generator(draw):
    cpu, other = torch.get_rng_state(), torch.openreg.get_rng_state(1)
    here = torch.openreg.get_rng_state(0)
    draw("openreg:0")
    assert torch.equal(cpu, torch.get_rng_state())
    assert torch.equal(other, torch.openreg.get_rng_state(1))
    assert not torch.equal(here, torch.openreg.get_rng_state(0))
    here = torch.openreg.get_rng_state(0)
    draw("cpu")
    assert torch.equal(here, torch.openreg.get_rng_state(0))


def test_own_generator():
    generator = torch.Generator(device="openreg").manual_seed(3)
    first = torch.rand(4, device="openreg", generator=generator)
    state = torch.openreg.get_rng_state()
    generator.manual_seed(3)
    assert torch.equal(first, torch.rand(4, device="openreg", generator=generator))
    assert torch.equal(state, torch.openreg.get_rng_state())


@pytest.mark.parametrize("device", ["cpu", "openreg:1"])
def test_a_generator_of_another_device_is_refused(device):
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(2, device="openreg:0", generator=torch.Generator(device=device))


def test_state_is_restored():
    torch.manual_seed(3)
    want = torch.rand(4, device="openreg")
    torch.manual_seed(3)
    with torch.random.fork_rng(devices=range(2), device_type="openreg"):
        torch.rand(99, device="openreg")
    assert torch.equal(torch.rand(4, device="openreg"), want)
