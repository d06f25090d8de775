"""OPENREG_LAUNCH=async: kernels are queued, results are the same, and errors come later."""

import pytest

TRAIN = """
import torch
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to("openreg")
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
x = torch.randn(4, 8, 16).to("openreg")
for _ in range(4):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""


def run(fresh, code, launch="async"):
    process = fresh(code, OPENREG_LAUNCH=launch)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def test_training_gives_the_same_losses(fresh):
    losses = run(fresh, TRAIN)
    assert len(losses) == 4
    assert losses == run(fresh, TRAIN, "inline")


# Every operator that draws, with the device's generator and with one of the program's own, and the
# cells and copies that are put together from other kernels.
DRAWS = """
import torch
import torch.nn.functional as F
torch.manual_seed(7)
own = torch.Generator("openreg").manual_seed(8)
x = torch.linspace(0.1, 0.9, 6).view(2, 3).to("openreg")
lstm, gru = torch.nn.LSTM(3, 4).to("openreg"), torch.nn.GRU(3, 4).to("openreg")
cell = torch.nn.LSTMCell(3, 4).to("openreg")
like = {"device": "openreg", "generator": own}
CALLS = {
    "rand": lambda: torch.rand(5, device="openreg"),
    "rand, own generator": lambda: torch.rand(5, **like),
    "randn": lambda: torch.randn(5, **like),
    "randint": lambda: torch.randint(9, (5,), **like),
    "randint from": lambda: torch.randint(3, 9, (5,), device="openreg"),
    "randperm": lambda: torch.randperm(5, **like),
    "randperm out": lambda: torch.randperm(3, out=torch.empty(3, device="openreg").long()),
    "rand_like": lambda: torch.rand_like(x),
    "randint_like": lambda: torch.randint_like(x, 9),
    "bernoulli": lambda: torch.bernoulli(x, generator=own),
    "bernoulli of a number": lambda: x.bernoulli(0.3),
    "multinomial": lambda: torch.multinomial(x, 2, generator=own),
    "normal": lambda: torch.normal(x, x, generator=own),
    "normal of numbers": lambda: torch.normal(1.0, 2.0, (4,), device="openreg"),
    "poisson": lambda: torch.poisson(x, generator=own),
    "gamma": lambda: torch._standard_gamma(x),
    "rrelu": lambda: F.rrelu(x - 1, training=True),
    "cauchy_": lambda: torch.empty_like(x).cauchy_(),
    "exponential_": lambda: torch.empty_like(x).exponential_(generator=own),
    "geometric_": lambda: torch.empty_like(x).geometric_(0.3),
    "log_normal_": lambda: torch.empty_like(x).log_normal_(),
    "random_": lambda: torch.empty_like(x).random_(),
    "uniform_": lambda: torch.empty_like(x).uniform_(2, 3),
    "dropout": lambda: F.dropout(x, 0.4),
    "dropout of everything": lambda: F.dropout(x, 1.0),
    "alpha_dropout": lambda: F.alpha_dropout(x, 0.4, training=True),
    "lstm cell": lambda: cell(x)[0],
    "gru": lambda: gru(x.view(2, 1, 3))[0],
    "to half": lambda: x.half(),
    "to contiguous": lambda: x.t().contiguous(),
    "copy_ with a broadcast": lambda: torch.empty(2, 2, 3, device="openreg").copy_(x),
    "copy between devices": lambda: x.to("openreg:1", torch.float64).t().to("openreg:0"),
    "own operator": lambda: torch.ops.openreg.bias_gelu(x, x[0]),
}
def bits(tensor):
    return [number.hex() for number in tensor.double().flatten().tolist()]
"""


def test_draws_cells_and_copies_are_queued_and_give_the_same_values(fresh):
    code = """
for call in CALLS.values():
    call()
torch.openreg.synchronize()
for name, call in CALLS.items():
    torch.openreg._sleep(50_000)
    result = call()
    print(name, "at once" if torch.openreg.current_stream().query() else "queued", *bits(result))
"""
    queued = run(fresh, DRAWS + code)
    assert [line for line in queued if " queued " not in line] == []
    at_once = [line.replace("at once", "queued") for line in run(fresh, DRAWS + code, "inline")]
    assert queued == at_once
    assert len(queued) > 30


def test_gradients_of_cells_and_dropout_are_the_same(fresh):
    code = """
w = torch.nn.Parameter(x.view(2, 1, 3).clone())
out = F.dropout(lstm(w)[0], 0.5) + F.dropout(gru(w)[0], 0.5)
out.square().sum().backward()
for p in (w, *lstm.parameters(), *gru.parameters()):
    print(*bits(p.grad))
"""
    queued = run(fresh, DRAWS + code)
    assert len(queued) == 9
    assert queued == run(fresh, DRAWS + code, "inline")


def test_streams_draw_from_a_generator_in_the_order_of_submission(fresh):
    code = """
import torch
first, second = torch.openreg.Stream(), torch.openreg.Stream()
own = torch.Generator("openreg").manual_seed(3)
for generator in (None, own):
    torch.manual_seed(3)
    with first:
        torch.openreg._sleep(100_000)
        a = torch.rand(1000, device="openreg", generator=generator)
    with second:
        b = torch.rand(1000, device="openreg", generator=generator)
        print(second.query())  # it waits for the first
        c = torch.nn.functional.dropout(torch.ones(1000, device="openreg"))
    with first:
        d = torch.randn(1000, device="openreg", generator=generator)
    torch.openreg.synchronize()
    host = torch.Generator().manual_seed(3)
    expected = [torch.rand(1000, generator=host), torch.rand(1000, generator=host)]
    if generator is None:
        expected.append(torch.empty(1000).bernoulli_(0.5, generator=host) * 2)
    expected.append(torch.randn(1000, generator=host))
    drawn = [a, b, c, d] if generator is None else [a, b, d]
    print([torch.equal(x.cpu(), y) for x, y in zip(drawn, expected, strict=True)])
"""
    assert run(fresh, code) == ["False", "[True, True, True, True]", "False", "[True, True, True]"]


def test_who_uses_a_generator_waits_for_the_draws_that_are_queued(fresh):
    code = """
import pickle, torch
def state(generator):
    return generator.get_state().sum().item()
USES = [
    state,
    lambda g: state(pickle.loads(pickle.dumps(g))),
    lambda g: state(g.clone_state()),
    lambda g: g.initial_seed(),
    lambda g: state(g.manual_seed(5)),
    lambda g: state(g.set_state(torch.Generator().get_state())),
    lambda g: g.seed() > 0,
    lambda g: torch._sample_dirichlet(torch.ones(3, device="openreg"), g).tolist(),  # runs at once
    lambda g: torch.rand(2, generator=g, device="openreg").tolist(),
]
stream = torch.openreg.Stream()
for use in USES:
    generator = torch.Generator("openreg").manual_seed(1)
    with stream:
        torch.openreg._sleep(50_000)
        x = torch.rand(1000, device="openreg", generator=generator)
    print(use(generator))
    torch.openreg.synchronize()
    print(x.sum().item())
"""
    queued = run(fresh, code)
    assert len(queued) == 18
    assert queued == run(fresh, code, "inline")


def test_seeding_does_not_reach_draws_that_are_queued(fresh):
    code = """
import torch
torch.manual_seed(1)
torch.openreg._sleep(100_000)
x = torch.rand(100, device="openreg")
torch.manual_seed(2)
y = torch.rand(100, device="openreg")
for seed, drawn in ((1, x), (2, y)):
    print(torch.equal(drawn.cpu(), torch.rand(100, generator=torch.Generator().manual_seed(seed))))
"""
    assert run(fresh, code) == ["True", "True"]


def test_threads_that_draw_get_each_number_once(fresh):
    code = """
import threading, torch
own = torch.Generator("openreg").manual_seed(3)
drawn = []
def work():
    with torch.openreg.Stream():
        mine = [torch.rand(16, device="openreg", generator=own) for _ in range(50)]
        torch.openreg.current_stream().synchronize()
        drawn.extend(mine)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
host = torch.Generator().manual_seed(3)
expected = sorted(tuple(torch.rand(16, generator=host).tolist()) for _ in range(200))
print(sorted(tuple(x.tolist()) for x in drawn) == expected)
"""
    assert run(fresh, code) == ["True"]


def test_waiting_for_a_kernel_that_is_written_in_python(fresh):
    code = """
import torch
@torch.library.custom_op("mine::twice", mutates_args=(), device_types="cpu")
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2
@twice.register_fake
def _(x):
    return torch.empty_like(x)
x = torch.ones(3, device="openreg")
for wait in (torch.openreg.get_rng_state, lambda: x.untyped_storage().resize_(1024)):
    torch.openreg._sleep(50_000)
    y = twice(x)
    r = torch.rand(3, device="openreg")
    wait()
    print(y.tolist())
"""
    assert run(fresh, code) == ["[2.0, 2.0, 2.0]"] * 2


def test_a_missing_synchronization_shows(fresh):
    code = """
import torch
x = torch.ones(4, device="openreg")
host = torch.zeros(4).pin_memory()
x + 1  # loads PyTorch's Meta kernels
torch.openreg.synchronize()
torch.openreg._sleep(300_000)
host.copy_(x + 1, non_blocking=True)
print(host.tolist())
torch.openreg.synchronize()
print(host.tolist())
"""
    assert run(fresh, code) == ["[0.0, 0.0, 0.0, 0.0]", "[2.0, 2.0, 2.0, 2.0]"]


def test_the_caller_may_change_what_it_has_given_away(fresh):
    code = """
import torch
x = torch.arange(6.0, device="openreg").view(2, 3)
scalar = torch.tensor(2.0)
torch.openreg._sleep(100_000)
y = x * scalar
scalar.fill_(100)
x.t_()  # another shape, before the product is computed
y.resize_(6)
print(y.tolist())
del x
z = y + 1
del y
print(z.tolist())
"""
    assert run(fresh, code) == [
        "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]",
        "[1.0, 3.0, 5.0, 7.0, 9.0, 11.0]",
    ]


@pytest.mark.parametrize("wait", ["torch.openreg.synchronize()", "y.cpu()"])
def test_an_error_is_raised_at_the_next_synchronization_and_names_the_operator(fresh, wait):
    code = f"""
import torch
x = torch.arange(4.0, device="openreg")
y = x.index_select(0, torch.tensor([99], device="openreg"))
print("queued")
try:
    {wait}
except RuntimeError as error:
    print("aten::index_select" in str(error), "out of range" in str(error))
print(x.sum().item())
"""
    assert run(fresh, code) == ["queued", "True True", "6.0"]


def test_an_error_of_a_draw_names_the_operator_and_leaves_the_generator_usable(fresh):
    code = """
import torch
x = torch.full((4,), -1.0, device="openreg")
for call in (
    lambda: torch.multinomial(x, 2),
    lambda: torch.poisson(x),
    lambda: torch.native_dropout(x, 2.0, True),
):
    y = call()
    try:
        torch.openreg.synchronize()
    except RuntimeError as error:
        print(str(error).split("LaunchFailure: ")[1])
torch.manual_seed(0)
print(torch.equal(torch.rand(3, device="openreg").cpu(), torch.rand(3)))
"""
    multinomial, poisson, dropout, usable = run(fresh, code)
    assert multinomial.startswith("aten::multinomial: probability tensor contains either")
    assert poisson.startswith("aten::poisson: invalid Poisson rate")
    assert dropout.startswith("aten::bernoulli_.float: bernoulli_ expects p to be in [0, 1]")
    assert usable == "True"


def test_errors_that_shapes_and_devices_show_are_raised_at_once(fresh):
    code = """
import torch
x = torch.ones(2, 3, device="openreg")
for call in (
    lambda: torch.mm(x, x),
    lambda: x.copy_(torch.ones(4, 3, device="openreg").half()),
    lambda: x[:1].expand(2, 3).copy_(x.half()),
    lambda: torch.rand(-1, device="openreg"),
    lambda: torch.randperm(-1, device="openreg"),
    lambda: torch.rand(2, device="openreg", generator=torch.Generator()),
    lambda: torch.bernoulli(x, generator=torch.Generator("openreg:1")),
):
    try:
        call()
    except RuntimeError as error:
        print(error)
"""
    errors = run(fresh, code)
    assert len(errors) >= 7
    assert errors == run(fresh, code, "inline")


def test_foreach_writes_are_noticed_by_autograd(fresh):
    code = """
import torch
w = torch.ones(2, 3, device="openreg", requires_grad=True)
b = torch.ones(2, 3, device="openreg")
y = (w * b).sum()
torch._foreach_add_([b], 1.0)
try:
    y.backward()
except RuntimeError as error:
    print("modified by an inplace operation" in str(error))
"""
    assert run(fresh, code) == ["True"]


BACKWARD_THREADS = """
import threading, torch
def backward(device):
    threads = set()
    x = torch.ones(2, device=device, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: threads.add(threading.get_ident()))
    y.sum().backward()
    assert x.grad.cpu().tolist() == [2, 2]
    return threads == {threading.get_ident()}
print(backward("openreg:0"), backward("openreg:1"))
def work():
    print(backward("openreg:1"))
    with torch.autograd.set_multithreading_enabled(True):
        print(backward("openreg:0"))
thread = threading.Thread(target=work); thread.start(); thread.join()
"""


def test_inline_backward_stays_on_the_thread_that_calls_it(fresh):
    # Unless the program wants the device's own thread, which each Python thread may decide.
    assert run(fresh, BACKWARD_THREADS, "inline") == ["True True", "True", "False"]


def test_queued_backward_runs_on_the_devices_thread(fresh):
    assert run(fresh, BACKWARD_THREADS, "async") == ["False False", "False", "False"]
