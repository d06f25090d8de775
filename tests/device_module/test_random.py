"""Random numbers, derived from the plugin's generators."""

import pytest


def test_seeds(minimal, raises):
    minimal("m.init(); m.manual_seed_all(7)")
    assert minimal("[g.initial_seed() for g in m.default_generators]") == [7, 7]
    minimal("with m.device(1): m.manual_seed(8)")
    assert minimal("[g.initial_seed() for g in m.default_generators]") == [7, 8]
    assert minimal("m.initial_seed()") == 7
    minimal("m.seed_all()")
    first, second = minimal("[g.initial_seed() for g in m.default_generators]")
    assert first == second
    assert first != 7
    minimal("m.seed()")
    assert minimal("m.default_generators[0].initial_seed()") != first


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seed_out_of_range_changes_nothing(minimal, raises, seed):
    minimal("m.manual_seed_all(7)")
    for function in ("manual_seed", "manual_seed_all"):
        with raises("ValueError: Overflow"):
            minimal(f"m.{function}({seed})")
    assert minimal("[g.initial_seed() for g in m.default_generators]") == [7, 7]


def test_state(minimal):
    minimal("m.manual_seed_all(1); states = m.get_rng_state_all(); m.manual_seed_all(2)")
    assert minimal("torch.equal(m.get_rng_state('minimal:1'), states[1])") is False
    minimal("m.set_rng_state_all(states)")
    assert minimal("[torch.equal(m.get_rng_state(i), states[i]) for i in (0, 1)]") == [True, True]
    assert minimal("str(m.get_rng_state().dtype)") == "torch.uint8"
    minimal("m.manual_seed_all(2); m.set_rng_state(states[0], torch.device('minimal', 1))")
    assert minimal("[torch.equal(m.get_rng_state(i), states[0]) for i in (0, 1)]") == [False, True]


def test_state_errors(minimal, raises):
    with raises("TypeError: RNG state must be a torch.ByteTensor"):
        minimal("m.set_rng_state(torch.ones(4))")
    with raises("AcceleratorError: minimal: invalid device ordinal 2"):
        minimal("m.set_rng_state(m.get_rng_state(), 2)")
    with raises("AcceleratorError"):
        minimal("m.get_rng_state(2)")
    with raises("ValueError: Expected a minimal device"):
        minimal("m.get_rng_state('cpu')")


@pytest.mark.parametrize("seed", [0, -1, -(2**63), 2**63, 2**64 - 1])
def test_every_seed_that_pytorch_takes(minimal, seed):
    for function in ("m.manual_seed", "m.manual_seed_all", "torch.manual_seed"):
        minimal("m.manual_seed_all(3)")
        minimal(f"{function}({seed})")
        assert minimal("m.initial_seed()") == seed % 2**64


def test_states_of_all_devices_are_set_together_or_not_at_all(minimal, raises):
    minimal("m.manual_seed_all(1); first, second = m.get_rng_state_all(); m.manual_seed_all(2)")
    for bad, error in {
        "[first, second[:9]]": "RuntimeError",
        "[first, second.float()]": "TypeError: RNG state must be a torch.ByteTensor",
        "[first, second.tolist()]": "TypeError: RNG state must be a torch.ByteTensor, but got list",
        "[first, second, first]": "AcceleratorError: minimal: invalid device ordinal 2",
    }.items():
        with raises(error):
            minimal(f"m.set_rng_state_all({bad})")
        assert minimal("[g.initial_seed() for g in m.default_generators]") == [2, 2]
        assert minimal("any(torch.equal(first, s) for s in m.get_rng_state_all())") is False
    minimal("m.set_rng_state_all(state for state in [first])")  # the second device keeps its own
    assert minimal("[torch.equal(first, s) for s in m.get_rng_state_all()]") == [True, False]


def test_states_of_all_devices_before_the_start(site):
    site.add_package("minimal")
    result = site.python(
        """
        import torch
        m = torch.minimal
        states = [torch.Generator().manual_seed(i).get_state() for i in (5, 6)]
        m.set_rng_state_all(states)
        print(m.is_initialized())
        print([torch.equal(a, b) for a, b in zip(states, m.get_rng_state_all())])
        """
    )
    assert (result.stdout, result.stderr) == ("False\n[True, True]\n", "")


def test_checkpoint_restores_the_devices_state(minimal):
    minimal(
        """
        from torch.utils.checkpoint import get_device_states, set_device_states
        m.manual_seed_all(1)
        indices, states = get_device_states(torch.ones(2).to("minimal"))
        m.manual_seed_all(2)
        set_device_states(indices, states, device_type="minimal")
        """
    )
    assert minimal("[g.initial_seed() for g in m.default_generators]") == [1, 2]


def test_fork_rng_of_torch(minimal):
    minimal(
        """
        m.manual_seed_all(3)
        before = m.get_rng_state_all()
        with torch.random.fork_rng(devices=range(2), device_type="minimal"):
            m.manual_seed_all(4)
        """
    )
    assert minimal("[torch.equal(a, b) for a, b in zip(before, m.get_rng_state_all())]") == [
        True,
        True,
    ]


def test_generator(minimal):
    assert minimal("m._get_generator('minimal:1') is m.default_generators[1]")


def test_device_without_random_numbers(site, raises):
    site.add_package("sound")
    with site.interpreter() as run:
        run("import torch; m = torch.faulty")
        # Seeding PyTorch must neither fail nor warn because of such a device.
        run("torch.manual_seed(1); m.manual_seed(1); m.manual_seed_all(1); m.seed(); m.seed_all()")
        with raises("ValueError: Overflow"):
            run(f"m.manual_seed_all({2**64})")
        for call in ("get_rng_state()", "initial_seed()", "set_rng_state(None)"):
            with raises("NotImplementedError: .*'faulty'.* does not implement devhost_rng"):
                run(f"m.{call}")
        assert run("hasattr(m, 'get_amp_supported_dtype')") is False
