"""torch.compile on the device, and the fake tensors that it traces with."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.testing import assert_close

BACKENDS = ["eager", "aot_eager"]


@pytest.fixture(autouse=True)
def _nothing_compiled_before():
    torch._dynamo.reset()


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 2)
    )


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_forward_and_backward_are_those_of_the_host(backend, dynamic):
    def train(device, compiled):
        net = model().to(device)
        call = torch.compile(net, backend=backend, dynamic=dynamic) if compiled else net
        results = []
        for rows in (4, 7, 1):
            x = torch.linspace(-1, 1, rows * 3).view(rows, 3).to(device).requires_grad_()
            y = call(x)
            y.square().sum().backward()
            results += [y.detach(), x.grad]
        return [*results, *(p.grad for p in net.parameters())]

    got = train("openreg", compiled=True)
    assert {t.device for t in got} == {torch.device("openreg:0")}
    for a, b in zip(got, train("cpu", compiled=False), strict=True):
        assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_convolution_and_attention(dynamic):
    def features(x, weight):
        y = functional.conv2d(x, weight, padding=1).relu()
        y = functional.batch_norm(y, None, None, training=True)
        tokens = y.flatten(2).transpose(1, 2).unsqueeze(1)
        return functional.scaled_dot_product_attention(tokens, tokens, tokens, is_causal=True)

    def run(device, function):
        generator = torch.Generator().manual_seed(0)
        x, weight = (torch.rand(s, generator=generator) for s in ((2, 3, 5, 5), (4, 3, 3, 3)))
        inputs = [t.to(device).requires_grad_() for t in (x, weight)]
        y = function(*inputs)
        return [y.detach(), *torch.autograd.grad(y.square().sum(), inputs)]

    compiled = torch.compile(features, backend="aot_eager", dynamic=dynamic, fullgraph=True)
    for a, b in zip(run("openreg", compiled), run("cpu", features), strict=True):
        assert a.device == torch.device("openreg:0")
        assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_devices_named_inside_the_function(backend):
    @torch.compile(backend=backend, fullgraph=True)
    def function(x):
        there = x.to("openreg:1") + torch.arange(3, device=torch.device("openreg", 1))
        here = there.to("openreg:0") * torch.full((3,), 2.0, device="openreg")
        like = torch.ones_like(here) if here.device.type == "openreg" else None
        return there, here, like, here.cpu()

    there, here, like, host = function(torch.ones(3))
    assert there.device == torch.device("openreg:1")
    assert here.device == like.device == torch.device("openreg:0")
    assert there.tolist() == [1, 2, 3]
    assert here.tolist() == host.tolist() == [2, 4, 6]


@pytest.mark.parametrize("backend", BACKENDS)
def test_mutation_and_views(backend):
    def function(x):
        x[1:].mul_(3)
        view = x.view(2, 2)
        view.add_(1)
        return view.t()

    x = torch.ones(4, device="openreg")
    result = torch.compile(function, backend=backend)(x)
    assert x.tolist() == [2, 4, 4, 4]
    assert result.tolist() == [[2, 4], [4, 4]]
    assert result.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


@pytest.mark.parametrize("backend", BACKENDS)
def test_random_numbers_come_from_the_devices_generator(backend):
    def function(x):
        return functional.dropout(x, 0.5) + torch.rand(8, device="openreg")

    x = torch.ones(8, device="openreg")
    torch.manual_seed(5)
    want = function(x)
    torch.manual_seed(5)
    host = torch.get_rng_state()
    assert torch.equal(torch.compile(function, backend=backend)(x), want)
    assert torch.equal(torch.get_rng_state(), host)


# Importing inductor gives warnings about what PyTorch itself has deprecated.
INDUCTOR = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@INDUCTOR
@pytest.mark.parametrize(
    ("function", "start", "options"),
    [
        (lambda x: x + 1, "openreg", {}),
        (lambda x: x @ x.t(), "openreg", {"dynamic": True}),
        (lambda x: x @ x.t(), "openreg", {"mode": "reduce-overhead"}),
        (lambda x: x @ x.t(), "openreg", {"mode": "max-autotune"}),
        (lambda x: x.t(), "openreg", {}),
        (lambda x: (x + 1).to("openreg") * 2, "cpu", {}),
        (lambda x: torch.rand(2, device="openreg"), "cpu", {}),
    ],
    ids=[
        "operator", "dynamic", "reduce-overhead", "max-autotune", "view", "from the host",
        "factory",
    ],
)  # fmt: skip
def test_inductor_says_what_works_instead(function, start, options):
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught:
        torch.compile(function, **options)(torch.ones(2, 2, device=start))
    message = str(caught.value)
    assert "inductor" in message
    assert "openreg" in message
    assert "aot_eager" in message
    assert isinstance(caught.value.inner_exception, NotImplementedError)
    assert torch.ones(1, device="openreg").item() == 1


@INDUCTOR
def test_inductor_still_compiles_for_the_host():
    assert torch.compile(lambda x: x * 2 + 1)(torch.ones(3)).tolist() == [3, 3, 3]


# ---- Fake tensors ----


def test_fake_tensors_keep_device_and_index_and_allocate_nothing():
    torch.ones(1, device="openreg")
    allocated = torch.openreg.memory_allocated()
    with FakeTensorMode():
        a = torch.ones(10, device="openreg")
        assert a.device == (a + torch.ones(10, device="openreg")).device
        assert a.device == torch.device("openreg:0")
        assert torch.empty_strided((2,), (1,), device="openreg").device.index == 0
        there = torch.randn(3, device="openreg:1")
        assert (there * 2).device == there[1:].device == torch.device("openreg:1")
        assert there.cpu().device == torch.device("cpu")
        assert there.to("openreg:0").device == torch.device("openreg:0")
        with pytest.raises(RuntimeError, match="at least two devices, openreg:0 and cpu"):
            a + torch.ones(10)
        with pytest.raises(RuntimeError, match="at least two devices, openreg:0 and openreg:1"):
            a[:3] + there
    assert torch.openreg.memory_allocated() == allocated


def test_fake_tensors_do_not_start_the_device(fresh):
    done = fresh(
        "import torch\n"
        "from torch._subclasses.fake_tensor import FakeTensorMode\n"
        "with FakeTensorMode():\n"
        "    x = torch.ones(3, 3, device='openreg')\n"
        "    print((x @ x).device, torch.openreg.is_initialized())\n"
    )
    assert done.stdout == "openreg:0 False\n", done.stderr


@pytest.mark.parametrize(
    "layer",
    [
        lambda x: functional.conv2d(x, torch.ones(2, 3, 3, 3, device=x.device)),
        lambda x: functional.scaled_dot_product_attention(x, x, x),
        lambda x: functional.batch_norm(x, None, None, training=True),
        lambda x: functional.max_pool2d(x, 2),
        lambda x: x.sort(-1)[0],
    ],
    ids=["convolution", "attention", "batch norm", "pooling", "sort"],
)
def test_fake_layers_forward_and_backward(layer):
    real = torch.rand(1, 3, 8, 8, device="openreg:1", requires_grad=True)
    want = layer(real)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(real)
        result = layer(fake)
        (grad,) = torch.autograd.grad(result.sum(), fake)
    assert result.shape == want.shape
    assert result.stride() == want.stride()
    assert result.device == grad.device == torch.device("openreg:1")
    assert grad.shape == real.shape
