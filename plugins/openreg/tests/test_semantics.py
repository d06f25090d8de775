"""What PyTorch promises of operators on any device: where results live, what they share."""

import operator

import pytest
import torch
from torch.testing import assert_close

HERE = torch.device("openreg:0")
THERE = torch.device("openreg:1")


# ---- Moving modules ----


def test_a_moved_module_keeps_its_parameters_and_ties():
    module = torch.nn.Sequential(
        torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False)
    )
    module[1].weight = module[0].weight
    weight = module[0].weight
    optimizer = torch.optim.SGD([weight], lr=1.0)
    module.to("openreg")
    assert module[0].weight is module[1].weight is weight
    assert weight.device == HERE
    with torch.no_grad():
        weight.copy_(torch.eye(2))
    module(torch.ones(1, 2, device="openreg")).sum().backward()
    optimizer.step()
    # y = W W x: dy/dW is 1 (W x)^T + W^T 1 x^T, which is 2 everywhere for W = I and x = 1.
    assert module[1].weight.tolist() == [[-1, -2], [-2, -1]]
    module.to("cpu")
    assert module[0].weight is weight
    assert weight.tolist() == [[-1, -2], [-2, -1]]


def test_data_may_move_to_another_device():
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.data = torch.full((2,), 3.0, device="openreg")
    assert parameter.device == HERE
    assert (parameter * 2).tolist() == [6, 6]
    parameter.data = parameter.data.cpu()
    assert parameter.device == torch.device("cpu")
    assert parameter.tolist() == [3, 3]


# ---- Devices of arguments and results ----


@pytest.mark.parametrize(
    "op",
    [operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor, operator.mod],
)
def test_reflected_integer_operators_stay_on_the_device(op):
    host = torch.tensor([1, 2, 3])
    result = op(2, host.to("openreg"))
    assert result.device == HERE
    assert result.dtype == torch.int64
    assert torch.equal(result.cpu(), op(2, host))


@pytest.mark.parametrize(
    "function",
    [
        torch.add,
        torch.special.xlog1py,  # through the fallback
        lambda a, b: torch.cat([a, b]),
        lambda a, b: a.add_(b),
        lambda a, b: torch.mul(a, a, out=b),
        lambda a, b: torch._foreach_add([a], [b]),
    ],
    ids=["add", "fallback", "cat", "in place", "out", "foreach"],
)
@pytest.mark.parametrize("other", ["cpu", "openreg:1"])
def test_tensors_on_different_devices_are_refused(function, other):
    here, elsewhere = torch.ones(2, device=HERE), torch.ones(2, device=other)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device") as e:
        function(here, elsewhere)
    assert "openreg:0" in str(e.value)
    assert other in str(e.value)
    assert here.tolist() == elsewhere.tolist() == [1, 1]


def test_a_host_scalar_is_not_written_by_the_device():
    scalar = torch.tensor(1.0)
    with pytest.raises(RuntimeError, match="same device"):
        scalar.add_(torch.ones((), device="openreg"))
    assert scalar.item() == 1


def test_a_device_scalar_is_not_a_number():
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2) + torch.ones((), device="openreg")
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(2, device=HERE) + torch.ones((), device=THERE)


def test_results_are_on_the_arguments_device_and_not_the_current_one():
    assert torch.openreg.current_device() == 0
    x = torch.rand(3, 3, device=THERE)
    for result in (
        x + 1,
        x @ x,
        torch.special.i0e(x),
        torch.linalg.svd(x)[2],
        torch.zeros_like(x),
        x.new_empty(2),
        x.nonzero(),
        torch._foreach_sqrt([x])[0],
    ):
        assert result.device == THERE
    assert torch.openreg.current_device() == 0


def test_indices_of_another_device_are_refused():
    x = torch.arange(4.0, device=HERE)
    index = torch.tensor([0, 2], device=THERE)
    with pytest.raises(RuntimeError, match="openreg:1"):
        x[index]
    with pytest.raises(RuntimeError, match="device"):
        torch.arange(4.0)[index]
    assert x[torch.tensor([True, False, False, True])].tolist() == [0, 3]


# ---- Views, offsets and strides ----


@pytest.mark.parametrize("rows", [slice(1, None, 2), slice(3, 8), slice(None, None, 3)])
def test_offset_and_stride_of_slices_are_honoured(rows):
    host = torch.arange(20.0).view(10, 2)
    here = host.to("openreg")
    assert torch.equal((here[rows] + here[rows]).cpu(), host[rows] * 2)
    assert_close(torch.special.i0e(here[rows]).cpu(), torch.special.i0e(host[rows]))
    here[rows].mul_(3)
    here[rows].erfinv_()  # through the fallback
    host[rows].mul_(3)
    host[rows].erfinv_()
    assert_close(here.cpu(), host, equal_nan=True)


def test_copies_between_columns_of_one_tensor():
    x = torch.arange(6.0, device="openreg").view(3, 2)
    x[:, 1].copy_(x[:, 0])
    assert x.tolist() == [[0, 0], [2, 2], [4, 4]]


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.add_(1),
        lambda t: t.digamma_(),
        lambda t: torch.exp(t.detach().clone(), out=t),
        lambda t: torch._foreach_add_([t], 1.0),
        lambda t: t.copy_(torch.ones(2, 3)),
        lambda t: t.__setitem__((0, 0), 5.0),
    ],
    ids=["in place", "fallback", "out", "foreach", "copy", "setitem"],
)
def test_every_write_is_noticed_by_autograd(write):
    base = torch.ones(2, 3, device="openreg")
    weight = torch.ones(2, 3, device="openreg", requires_grad=True)
    y = (weight * base).sum()  # saves base for the derivative
    version = base._version
    write(base)
    assert base._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_negative_strides_are_refused():
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        torch.empty_strided((2,), (-1,), device="openreg")


@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
def test_memory_formats_are_those_of_the_cpu(memory_format):
    host = torch.rand(2, 3, 5, 5).contiguous(memory_format=memory_format)
    here = host.to("openreg")
    assert here.stride() == host.stride()
    weight = torch.rand(4, 3, 3, 3)
    for function in (
        lambda t: torch.nn.functional.conv2d(t, weight.to(t.device)),
        lambda t: torch.nn.functional.max_pool2d(t, 2),
        lambda t: torch.nn.functional.interpolate(t, scale_factor=2, mode="bilinear"),
        lambda t: t + 1,
        torch.special.i0e,
        torch.clone,
    ):
        got, want = function(here), function(host)
        assert got.stride() == want.stride()
        assert_close(got.cpu(), want)


# ---- No elements ----


def test_operators_on_no_elements():
    x = torch.empty(0, 64, device="openreg")
    assert torch.cat([x, x]).shape == (0, 64)
    assert x.sum(0).tolist() == [0] * 64
    assert x[:, :0].numel() == 0
    assert x.t().contiguous().shape == (64, 0)
    assert x.copy_(torch.empty(0, 64)).zero_().shape == (0, 64)
    assert x.sort(0)[0].shape == x[x > 0].reshape(0, 64).shape == (0, 64)
    a, b = torch.ones(2, 0, device="openreg"), torch.ones(0, 3, device="openreg")
    assert (a @ b).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert repr(x) == "tensor([], device='openreg:0', size=(0, 64))"
    with pytest.raises(RuntimeError, match="Expected reduction dim"):
        x.amax()


# ---- Lists and optimizers ----


def test_lists_of_mixed_shapes_and_dtypes():
    tensors = [torch.ones(2, device=HERE), torch.ones((), device=HERE, dtype=torch.float64)]
    results = torch._foreach_mul(tensors, [torch.full((2,), 3.0, device=HERE), torch.tensor(2.0)])
    assert [r.tolist() for r in results] == [[3, 3], 2]
    assert [r.dtype for r in results] == [torch.float32, torch.float64]
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_add([], 1.0)


@pytest.mark.parametrize(
    "options",
    [
        {"foreach": True, "amsgrad": True},
        {"fused": True, "amsgrad": True, "maximize": True},
        {"foreach": False, "amsgrad": True, "weight_decay": 0.1},
    ],
    ids=["foreach", "fused", "plain"],
)
def test_adamw_with_amsgrad(options):
    def train(device):
        parameter = torch.nn.Parameter(torch.linspace(-1, 1, 6).to(device))
        optimizer = torch.optim.AdamW([parameter], lr=0.1, **options)
        for step in range(4):
            optimizer.zero_grad()
            (parameter.square().sum() * (1 + step)).backward()
            optimizer.step()
        return parameter.detach().cpu()

    assert_close(train("openreg"), train("cpu"), rtol=1e-5, atol=1e-6)


OTHER_OPTIMIZERS = [
    "Adadelta", "Adafactor", "Adagrad", "Adamax", "ASGD", "Muon", "NAdam", "RAdam", "RMSprop",
    "Rprop",
]  # fmt: skip


@pytest.mark.parametrize("foreach", [False, True], ids=["plain", "foreach"])
@pytest.mark.parametrize("name", OTHER_OPTIMIZERS)
def test_the_other_optimizers(name, foreach):
    def train(device):
        start = torch.linspace(-1, 1, 12).view(3, 4)
        parameters = [torch.nn.Parameter(start.to(device) * k) for k in (1, 2)]
        # Muon has no choice of implementation.
        options = {} if name == "Muon" else {"foreach": foreach}
        optimizer = getattr(torch.optim, name)(parameters, lr=0.05, **options)
        for _ in range(3):
            optimizer.zero_grad()
            sum(p.square().sum() for p in parameters).backward()
            optimizer.step()
        return [p.detach().cpu() for p in parameters]

    for got, want in zip(train("openreg"), train("cpu"), strict=True):
        assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_lbfgs_converges():
    x = torch.nn.Parameter(torch.tensor([3.0, -2.0], device="openreg"))
    optimizer = torch.optim.LBFGS([x], lr=0.5, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (x - torch.tensor([1.0, 2.0], device="openreg")).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert x.tolist() == pytest.approx([1.0, 2.0], abs=1e-4)


def test_clipping_gradients():
    parameters = [torch.ones(3, device="openreg", requires_grad=True) for _ in range(2)]
    for parameter in parameters:
        parameter.grad = torch.full((3,), 2.0, device="openreg")
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_norm=1.0)
    assert norm.device == HERE
    assert norm.item() == pytest.approx(24**0.5)
    assert parameters[1].grad.tolist() == pytest.approx([2 / 24**0.5] * 3, rel=1e-5)
