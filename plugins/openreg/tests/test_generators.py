"""The generators of the device: seeds, states, copies, threads, processes, and PyTorch's tools."""

import copy
import io
import pickle
import threading

import pytest
import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader


@pytest.fixture
def untouched():
    """Assert that a test leaves the CPU's generator and the second device's alone."""
    cpu, other = torch.get_rng_state(), torch.openreg.get_rng_state(1)
    yield
    assert torch.equal(cpu, torch.get_rng_state())
    assert torch.equal(other, torch.openreg.get_rng_state(1))


@pytest.mark.parametrize("seed", [0, 1, -1, -(2**63), 2**63, 2**64 - 1, 1 << 40])
def test_seeds_mean_what_they_mean_on_the_cpu(seed):
    torch.manual_seed(seed)
    assert torch.openreg.initial_seed() == torch.initial_seed() == seed % 2**64
    assert torch.equal(torch.rand(9, device="openreg").cpu(), torch.rand(9))
    torch.manual_seed(0)
    torch.openreg.manual_seed(seed)
    assert torch.openreg.initial_seed() == seed % 2**64
    assert torch.Generator("openreg").manual_seed(seed).initial_seed() == seed % 2**64


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_a_seed_out_of_range_changes_nothing(seed):
    generator = torch.Generator("openreg").manual_seed(5)
    before = torch.openreg.get_rng_state_all()
    for function in (
        torch.openreg.manual_seed,
        torch.openreg.manual_seed_all,
        generator.manual_seed,
    ):
        with pytest.raises((ValueError, RuntimeError), match="Overflow"):
            function(seed)
    assert all(map(torch.equal, before, torch.openreg.get_rng_state_all()))
    assert generator.initial_seed() == 5


def test_the_state_after_seeding_depends_on_the_seed_alone():
    torch.openreg.manual_seed(9)
    want = torch.openreg.get_rng_state()
    torch.randn(1001, device="openreg").bernoulli_()
    torch.openreg.manual_seed(9)
    assert torch.equal(torch.openreg.get_rng_state(), want)


def test_seeding_one_device_and_all(other_device):
    torch.openreg.manual_seed_all(3)
    assert torch.equal(torch.openreg.get_rng_state(0), torch.openreg.get_rng_state(1))
    with torch.openreg.device(other_device):
        torch.openreg.manual_seed(4)
    assert [g.initial_seed() for g in torch.openreg.default_generators] == [3, 4]
    torch.seed()
    first, second = (g.initial_seed() for g in torch.openreg.default_generators)
    assert first == second == torch.initial_seed()
    torch.openreg.seed()
    assert torch.openreg.initial_seed() != first


def test_a_device_draws_from_its_own_generator(other_device):
    torch.openreg.manual_seed_all(3)
    first = torch.rand(4, device="openreg:0")
    assert torch.equal(torch.rand(4, device=other_device).cpu(), first.cpu())
    with torch.openreg.device(other_device):
        here = torch.openreg.get_rng_state(1)
        torch.rand(4, device="openreg")
        assert not torch.equal(here, torch.openreg.get_rng_state(1))


# ---- Generators ----


def test_own_generator(untouched):
    generator = torch.Generator(device="openreg").manual_seed(3)
    assert generator.device == torch.device("openreg:0")
    state = torch.openreg.get_rng_state()
    first = torch.rand(4, device="openreg", generator=generator)
    assert torch.equal(first.cpu(), torch.rand(4, generator=torch.Generator().manual_seed(3)))
    assert torch.equal(state, torch.openreg.get_rng_state())


def test_generator_of_the_current_device(other_device):
    with torch.openreg.device(other_device):
        assert torch.Generator("openreg").device == other_device
    with pytest.raises(torch.AcceleratorError, match="there is no device 7"):
        torch.Generator("openreg:7")


@pytest.mark.parametrize("device", ["cpu", "openreg:1"])
def test_a_generator_of_another_device_is_refused(device):
    wrong = torch.Generator(device)
    before = wrong.get_state()
    expected = {
        "cpu": "Expected a 'openreg' device type for generator but found 'cpu'",
        "openreg:1": "Expected a generator of openreg:0 but found one of openreg:1",
    }
    with pytest.raises(RuntimeError, match=expected[device]):
        torch.rand(2, device="openreg:0", generator=wrong)
    with pytest.raises(RuntimeError, match=expected[device]):
        torch.zeros(2, device="openreg:0").uniform_(generator=wrong)
    assert torch.equal(before, wrong.get_state())


def test_the_hosts_tensors_refuse_the_devices_generator():
    generator = torch.Generator("openreg")
    for draw in (
        lambda: torch.zeros(2).uniform_(generator=generator),
        lambda: torch.rand(2, generator=generator),
        lambda: torch.randperm(2, generator=generator),
        lambda: torch.normal(torch.zeros(2), torch.ones(2), generator=generator),
    ):
        with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator"):
            draw()


@pytest.mark.parametrize("draws", [0, 1, 3, 311, 624, 1000])
def test_state_is_restored_at_any_position(draws):
    generator = torch.Generator("openreg").manual_seed(1)
    torch.randn(draws, device="openreg", generator=generator)
    torch.randn((), device="openreg", generator=generator)  # half a pair is left
    state = generator.get_state()
    assert (state.dtype, state.device.type) == (torch.uint8, "cpu")
    want = torch.randn(700, device="openreg", generator=generator)
    generator.set_state(state)
    assert torch.equal(torch.randn(700, device="openreg", generator=generator), want)
    # It is the CPU's state, which can be exchanged with it.
    host = torch.Generator()
    host.set_state(state)
    assert torch.equal(torch.randn(700, generator=host), want.cpu())


@pytest.mark.parametrize(
    "copy_of",
    [
        lambda g: g.clone_state(),
        copy.deepcopy,
        lambda g: pickle.loads(pickle.dumps(g)),
        lambda g: torch.load(saved(g), weights_only=False),
    ],
    ids=["clone_state", "deepcopy", "pickle", "torch.save"],
)
def test_a_copy_goes_on_from_the_same_state(copy_of, other_device):
    generator = torch.Generator(other_device).manual_seed(2)
    torch.randn(5, device=other_device, generator=generator)
    duplicate = copy_of(generator)
    assert duplicate.device == other_device
    assert duplicate.initial_seed() == 2
    want = torch.randn(5, device=other_device, generator=generator)
    assert torch.equal(torch.randn(5, device=other_device, generator=duplicate), want)
    # and on its own
    torch.randn(5, device=other_device, generator=duplicate)
    assert not torch.equal(duplicate.get_state(), generator.get_state())


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_bad_states():
    generator = torch.Generator("openreg").manual_seed(1)
    before = generator.get_state()
    with pytest.raises(RuntimeError, match="state of openreg:0 with 5056 bytes, but got 3 bytes"):
        generator.set_state(torch.zeros(3, dtype=torch.uint8))
    with pytest.raises(TypeError, match="ByteTensor"):
        generator.set_state(torch.zeros(5056))
    with pytest.raises(RuntimeError, match="mt19937"):
        generator.set_state(torch.full((5056,), 255, dtype=torch.uint8))
    with pytest.raises(NotImplementedError, match="openreg:0 has no offset"):
        generator.set_offset(4)
    assert torch.equal(generator.get_state(), before)


def test_states_of_all_devices_are_set_together_or_not_at_all():
    torch.openreg.manual_seed_all(1)
    first, second = before = torch.openreg.get_rng_state_all()
    torch.openreg.manual_seed_all(2)
    other = torch.openreg.get_rng_state_all()
    for bad, error in (
        ([first, second[:9]], RuntimeError),
        ([first, second.float()], TypeError),
        ([first, second, first], torch.AcceleratorError),
        ([first, None], TypeError),
    ):
        with pytest.raises(error):
            torch.openreg.set_rng_state_all(bad)
        assert all(map(torch.equal, other, torch.openreg.get_rng_state_all()))
    torch.openreg.set_rng_state_all(before)
    assert all(map(torch.equal, before, torch.openreg.get_rng_state_all()))


# ---- Threads and processes ----


def test_threads_that_share_a_generator_draw_each_number_once():
    shared = torch.Generator("openreg").manual_seed(4)
    drawn, start = [], threading.Barrier(4)

    def draw():
        start.wait()
        mine = [torch.rand(3, device="openreg", generator=shared) for _ in range(250)]
        drawn.extend(mine)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = torch.rand(1000, 3, generator=torch.Generator().manual_seed(4))
    got = {tuple(numbers.tolist()) for numbers in drawn}
    assert got == {tuple(row) for row in want.tolist()}


def test_states_can_be_saved_while_another_thread_draws():
    generator = torch.Generator("openreg").manual_seed(4)
    done = threading.Event()

    def draw():
        for _ in range(300):
            torch.rand(700, device="openreg", generator=generator)
        done.set()

    thread = threading.Thread(target=draw)
    thread.start()
    states = []
    while not done.is_set():
        states.append(generator.get_state())
    thread.join()
    for state in states[:: max(1, len(states) // 50)]:
        torch.Generator("openreg").set_state(state)  # refuses one that was caught in the middle
    host = torch.Generator().manual_seed(4)
    torch.rand(300 * 700, generator=host)
    assert torch.equal(generator.get_state(), host.get_state())


def test_seed_before_the_first_use(fresh):
    result = fresh(
        "import torch\n"
        "torch.manual_seed(5); torch.openreg.set_device(1); torch.openreg.manual_seed(6)\n"
        "torch.openreg.set_device(0)\n"
        "print([g.initial_seed() for g in torch.openreg.default_generators])\n"
        "print(torch.rand(1, device='openreg').item() == "
        "torch.rand(1, generator=torch.Generator().manual_seed(5)).item())"
    )
    assert result.stdout.splitlines() == ["[5, 6]", "True"], result.stderr


def test_seed_before_initialisation_reaches_a_forked_child(fresh):
    result = fresh(
        "import os, torch\n"
        "torch.manual_seed(5)\n"
        "assert not torch.openreg.is_initialized()\n"
        "if os.fork() == 0:\n"
        "    print(torch.openreg.initial_seed(), flush=True)\n"
        "    torch.manual_seed(8)\n"
        "    print(torch.rand(1, device='openreg').item() == torch.rand(1).item(), flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print(torch.openreg.initial_seed())"
    )
    assert result.stdout.splitlines() == ["5", "True", "5"], result.stderr


def test_seed_in_a_child_that_cannot_use_the_device(fresh):
    result = fresh(
        "import os, torch\n"
        "torch.manual_seed(5); torch.rand(1, device='openreg')\n"
        "if os.fork() == 0:\n"
        "    torch.manual_seed(8); torch.openreg.manual_seed(8); torch.seed()\n"
        "    try: torch.openreg.get_rng_state()\n"
        "    except RuntimeError as error: print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print(torch.openreg.initial_seed())"
    )
    refusal, seed = result.stdout.splitlines()
    assert refusal.startswith("Cannot re-initialize openreg in forked subprocess")
    assert (seed, result.stderr) == ("5", "")


def test_data_loader_workers_beside_an_initialised_device(fresh):
    result = fresh(
        "import torch\n"
        "from torch.utils.data import DataLoader\n"
        "class Draws(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 6\n"
        "    def __getitem__(self, index): return torch.rand(1), torch.initial_seed()\n"
        "torch.rand(1, device='openreg')\n"
        "before = torch.openreg.get_rng_state()\n"
        "numbers, seeds = zip(*DataLoader(Draws(), batch_size=1, num_workers=2))\n"
        "print(len({n.item() for n in numbers}), len({s.item() for s in seeds}))\n"
        "print(torch.equal(before, torch.openreg.get_rng_state()))"
    )
    assert result.stdout.splitlines() == ["6 2", "True"], result.stderr


def test_samplers_under_the_default_device():
    with torch.device("openreg"):
        generator = torch.Generator(device="openreg")
        assert torch.randperm(5, generator=generator).device.type == "openreg"
    assert sorted(map(int, DataLoader(range(5), shuffle=True))) == list(range(5))


# ---- PyTorch's tools ----


def test_fork_rng(other_device):
    torch.manual_seed(3)
    want = [torch.rand(4, device=device) for device in ("openreg", other_device, "cpu")]
    torch.manual_seed(3)
    with torch.random.fork_rng(devices=range(2), device_type="openreg"):
        torch.rand(99, device="openreg")
        with torch.random.fork_rng(devices=[other_device], device_type="openreg"):
            torch.manual_seed(8)
            torch.rand(9, device=other_device)
    again = [torch.rand(4, device=device) for device in ("openreg", other_device, "cpu")]
    assert all(map(torch.equal, want, again))


def test_fork_rng_restores_after_an_exception():
    before = torch.openreg.get_rng_state_all()

    @torch.random.fork_rng(range(2), device_type="openreg")
    def fail():
        torch.rand(9, device="openreg")
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert all(map(torch.equal, before, torch.openreg.get_rng_state_all()))


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("device", ["openreg:0", "openreg:1"])
def test_checkpointed_dropout_drops_the_same_again(device, reentrant):
    x = torch.ones(400, device=device, requires_grad=True)
    torch.manual_seed(6)
    want = functional.dropout(x, 0.5)
    torch.manual_seed(6)
    output = checkpoint(functional.dropout, x, 0.5, use_reentrant=reentrant)
    assert torch.equal(output, want)
    after = torch.openreg.get_rng_state(device)
    torch.rand(9, device=device)
    moved = torch.openreg.get_rng_state(device)
    output.sum().backward()
    assert torch.equal(x.grad, want.detach())  # 2 where kept, 0 where dropped: in both passes
    assert torch.equal(moved, torch.openreg.get_rng_state(device))
    assert not torch.equal(after, moved)


def test_default_generators_are_the_ones_operators_use():
    generator = torch.openreg.default_generators[0]
    torch.manual_seed(3)
    first = torch.rand(4, device="openreg")
    torch.manual_seed(3)
    assert torch.equal(torch.rand(4, device="openreg", generator=generator), first)
