"""What the device computes is what the CPU computes, and it stays on the device."""

import copy
import operator

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
]  # fmt: skip


def on_device(tensor, requires_grad=False):
    return tensor.detach().to("openreg").requires_grad_(requires_grad)


# ---- Copies ----


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_in_every_direction_and_dtype(dtype):
    host = torch.tensor([[0, 1, 2], [3, 1, 0]]).to(dtype)
    here = host.to("openreg:0")
    there = here.to("openreg:1")
    assert here.dtype == there.dtype == dtype
    assert there.device == torch.device("openreg:1")
    assert torch.equal(here.cpu(), host)
    assert torch.equal(there.cpu(), host)
    if not dtype.is_complex:  # that warns, on the CPU too
        assert torch.equal(here.to(torch.float32).cpu(), host.to(torch.float32))
        assert torch.equal(torch.empty(2, 3).copy_(there), host.to(torch.float32))


def test_copies_between_layouts_and_shapes():
    host = torch.arange(24.0).view(2, 3, 4)
    here = host.to("openreg")
    assert torch.equal(here.transpose(0, 2).cpu(), host.transpose(0, 2))
    assert torch.equal(here[:, 1::2].contiguous().cpu(), host[:, 1::2])
    assert torch.equal(
        torch.zeros(2, 3, 4, device="openreg").copy_(host[0]).cpu(), host[0].expand(2, 3, 4)
    )
    strided = torch.zeros(4, 3, 2, device="openreg").permute(2, 1, 0)
    assert torch.equal(strided.copy_(host).cpu(), host)
    assert torch.equal(host.to(memory_format=torch.contiguous_format).to("openreg").cpu(), host)


def test_lazy_conjugates_and_negatives_are_carried_over():
    z = torch.tensor([1 + 2j, 3 - 4j])
    for view in (z.conj(), z.conj().imag, z.real, torch._neg_view(z.real)):
        want = view.resolve_conj().resolve_neg()
        assert torch.equal(view.to("openreg").cpu().resolve_conj().resolve_neg(), want)
    there = z.to("openreg").conj()
    assert torch.equal(there.resolve_conj().cpu(), z.conj().resolve_conj())
    assert torch.equal((there * 2).cpu(), (z.conj() * 2).resolve_conj())


def test_zeros_without_bytes():
    # What some derivatives return instead of zeros. Kernels for it have to ask, as copies do.
    zeros = torch._efficientzerotensor((2, 3), device="openreg")
    x = torch.ones(2, 3, device="openreg")
    assert zeros._is_zerotensor()
    assert zeros.t()._is_zerotensor()
    for made in (zeros.clone(), zeros.half(), x.clone().copy_(zeros), zeros.to("openreg:1")):
        assert made.device.type == "openreg"
        assert not made._is_zerotensor()
        assert made.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert (x + zeros).tolist() == x.tolist()
    assert zeros.cpu().tolist() == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(RuntimeError, match="immutable"):
        zeros.copy_(x)


def test_the_derivative_of_dropout_leaves_its_mask_as_it_is():
    mask = torch.ones(3, device="openreg")  # of the gradient's own type, which CUDA takes too
    grad = torch.ops.aten.native_dropout_backward(torch.ones(3, device="openreg"), mask, 2.0)
    assert grad.tolist() == [2, 2, 2]
    assert mask.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16, torch.complex64])
def test_derivative_of_dropout_has_the_cpus_dtype(dtype):
    grad, mask = torch.tensor([3, 2, 1]).to(dtype), torch.tensor([True, False, True])
    backward = torch.ops.aten.native_dropout_backward
    wanted = backward(grad, mask, 2.0)
    got = backward(grad.to("openreg"), mask.to("openreg"), 2.0)
    assert got.dtype == wanted.dtype
    assert torch.equal(got.cpu(), wanted)


def test_empty_tensors():
    host = torch.empty(0, 64)
    here = host.to("openreg")
    assert here.shape == here.cpu().shape == (0, 64)
    assert "device='openreg:0'" in str(here)
    assert (here + 1).shape == (0, 64)
    assert here.sum().item() == 0
    assert torch.equal(torch.mm(here.t(), here).cpu(), torch.zeros(64, 64))


# ---- Views and metadata ----


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.view(6), lambda t: t.t(), lambda t: t[1], lambda t: t[:, ::2],
        lambda t: t.unsqueeze(0), lambda t: t.expand(2, 2, 3)[0], lambda t: t.diagonal(),
        lambda t: t.as_strided((2,), (3,), 1), lambda t: t.unfold(1, 2, 1), lambda t: t.detach(),
        lambda t: t.unbind(0)[1], lambda t: t.split(1)[0], lambda t: t.view(torch.int32),
        lambda t: t.movedim(0, 1), lambda t: t.squeeze(), lambda t: t.narrow(1, 1, 1),
    ],
)  # fmt: skip
def test_views_alias_their_base(view):
    base = torch.ones(2, 3, device="openreg")
    alias = view(base)
    version = base._version
    alias.zero_()
    assert alias.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert base._version > version
    want = torch.ones(2, 3)
    view(want).zero_()
    assert torch.equal(base.cpu(), want)


def test_one_storage_in_every_shape_dtype_and_state_by_turns():
    # What kernels see of a tensor stays with its memory from one call to the next.
    uses = [
        lambda t: t + 1, lambda t: t.t() @ t, lambda t: t.view(torch.float32).sum(),
        lambda t: t[1:] * 2, lambda t: t.conj() * 1j, lambda t: t.conj().imag.neg(),
        lambda t: t.mul_(0.5).real.sum(0), lambda t: torch.add(t, t, out=t).sum(),
        lambda t: t[:0].sum(), lambda t: t[0, 0] + 1, lambda t: t.abs(),
        lambda t: t.view(torch.int32).bitwise_not(), lambda t: t.expand(2, 3, 3).sum(0),
    ]  # fmt: skip
    host = torch.arange(9.0).view(3, 3).to(torch.complex64) * (1 + 2j)
    here = host.to("openreg")
    for mode in (torch.inference_mode, torch.no_grad, torch.enable_grad, torch.inference_mode):
        for _ in range(2):
            for use in uses:
                with mode():
                    assert_close(use(here).cpu(), use(host))


def test_what_a_kernel_keeps_is_its_own(fresh):
    code = """
import torch
library = torch.library.Library("aten", "IMPL")
keeps = True
kept = []
def keep(x):
    print(hasattr(x, "mark"), x.shape[0])
    x.mark = True
    if keeps:
        kept.append(x)
    return torch.empty_like(x).fill_(5)
library.impl("sigmoid", keep, "CPU", allow_override=True)
x = torch.ones(6, device="openreg")
for shape in ((6,), (2, 3), (6,)):
    print(x.view(shape).sigmoid().sum().item())
print([tuple(each.shape) for each in kept])
keeps = False
x.sigmoid()
x.sigmoid()
"""
    process = fresh(code)
    assert process.stdout.splitlines() == [
        "False 6", "30.0", "False 2", "30.0", "False 6", "30.0", "[(6,), (2, 3), (6,)]",
        "False 6", "False 6",
    ]  # fmt: skip


def test_resizing_grows_the_storage_and_keeps_the_values():
    x = torch.arange(4.0, device="openreg")
    view = x[2:]
    x.resize_(3, 4)
    assert x.untyped_storage().nbytes() == 48
    assert x.view(-1)[:4].tolist() == [0, 1, 2, 3]
    x.zero_()
    assert view.tolist() == [0, 0]  # the storage is still shared


def test_storage_resize_and_set():
    x = torch.arange(4.0, device="openreg")
    storage = x.untyped_storage()
    allocated = torch.openreg.memory_allocated()
    storage.resize_(0)
    assert torch.openreg.memory_allocated() < allocated
    storage.resize_(16)
    x.copy_(torch.arange(4.0))
    y = torch.empty(0, device="openreg").set_(storage, 1, (2,), (2,))
    assert y.tolist() == [1, 3]
    assert y.untyped_storage().data_ptr() == x.data_ptr()


@pytest.mark.parametrize("op", ["mul", "special_i0e"])  # an unboxed kernel, and the fallback
def test_out_is_resized_where_it_is_empty_and_written_in_place_elsewhere(op):
    x = torch.rand(5)
    function = (lambda t, **k: torch.mul(t, t, **k)) if op == "mul" else torch.special.i0e
    out = torch.empty(0, device="openreg")
    assert function(x.to("openreg"), out=out) is out
    assert_close(out.cpu(), function(x))
    base = torch.zeros(10, device="openreg")
    function(x.to("openreg"), out=base[::2])
    assert_close(base[::2].cpu(), function(x))
    assert base[1::2].tolist() == [0] * 5
    with pytest.warns(UserWarning, match="was resized"):
        function(x.to("openreg"), out=torch.ones(3, device="openreg"))


def test_overlapping_output_is_refused_as_on_the_cpu():
    x = torch.ones(4, device="openreg")
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        torch.ones(1, device="openreg").expand(4).add_(1)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        torch.exp(x[1:], out=x[:3])


@pytest.mark.parametrize(
    ("size", "stride"),
    [((2, 3), (1, 2)), ((2, 3), (6, 2)), ((0, 3), (3, 1)), ((2, 2), (0, 1)), ((), ())],
)
def test_empty_strided_keeps_the_strides(size, stride):
    here = torch.empty_strided(size, stride, device="openreg")
    host = torch.empty_strided(size, stride)
    assert here.stride() == stride
    assert here.untyped_storage().nbytes() == host.untyped_storage().nbytes()


# ---- Scalars ----


@pytest.mark.parametrize(
    "op",
    [
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.floordiv,
        operator.mod,
        operator.pow,
    ],
)
def test_reflected_operators_stay_on_the_device(op):
    x = torch.tensor([1.0, 2.0, 3.0])
    result = op(2, x.to("openreg"))
    assert result.device.type == "openreg"
    assert torch.equal(result.cpu(), op(2, x))


def test_host_scalars_are_numbers():
    x, s = torch.ones(3, device="openreg", dtype=torch.float16), torch.tensor(0.125)
    for y in (x * s, s * x, s - x, torch.where(x > 0, s.half(), x), x.clamp(min=s.half())):
        assert y.device.type == "openreg"
        assert y.dtype == torch.float16
    x.mul_(s)
    x[0] = s
    assert x.tolist() == [0.125] * 3


def test_indices_may_stay_on_the_host():
    x = torch.arange(12.0).view(3, 4)
    index = torch.tensor([2, 0])
    here = x.to("openreg")
    assert torch.equal(here[index].cpu(), x[index])
    assert torch.equal(here[:, index.to("openreg")].cpu(), x[:, index])
    here[index] = 7
    assert here[:, 0].tolist() == [7, 4, 7]


# ---- The fallback ----


def test_lists_are_mutated_in_place():
    tensors = [torch.ones(s, device="openreg") for s in ((), (2,), (0,), (2, 3))]
    pointers = [t.data_ptr() for t in tensors]
    torch._foreach_add_(tensors, 1.0)
    torch._foreach_mul_(tensors, tensors)
    assert all(t.cpu().eq(4).all() for t in tensors)
    assert pointers == [t.data_ptr() for t in tensors]
    assert all(t.device.type == "openreg" for t in torch._foreach_sqrt(tensors))


@pytest.mark.parametrize(
    "make",
    [torch.exp, torch.special.i0e, torch.unique, lambda x: torch.linalg.qr(x.view(512, 512))[0]],
    ids=["unboxed", "fallback", "unknown size", "several results"],
)
def test_results_are_in_device_memory_and_leave_nothing_behind(make):
    x = torch.rand(1 << 18, device="openreg")
    before = torch.openreg.memory_allocated()
    result = make(x)
    assert result.device == torch.device("openreg:0")
    assert torch.openreg.memory_allocated() - before >= result.untyped_storage().nbytes() > 0
    del result
    assert torch.openreg.memory_allocated() == before


def test_an_error_in_a_kernel_changes_nothing():
    x = torch.ones(3, device="openreg")
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        torch.mm(torch.ones(2, 3, device="openreg"), torch.ones(2, 3, device="openreg"))
    with pytest.raises(RuntimeError):
        torch.linalg.cholesky(-torch.eye(3, device="openreg"))
    assert (x + 1).tolist() == [2, 2, 2]


def test_a_missing_operator_is_named():
    with pytest.raises(NotImplementedError, match=r"aten::_cudnn_ctc_loss.*openreg"):
        torch._cudnn_ctc_loss(
            torch.rand(2, 1, 3, device="openreg"),
            torch.ones(1, 1, device="openreg", dtype=torch.int32),
            [2],
            [1],
            0,
            False,
            False,
        )


# ---- Autograd and layers ----


def test_casts_are_differentiable():
    x = torch.ones(3, device="openreg", requires_grad=True)
    x.double().float().half().float().sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def grads_of(module, *inputs):
    output = module(*inputs)
    while isinstance(output, tuple):
        output = output[0]
    output.square().sum().backward()
    return [output.detach(), *(p.grad for p in module.parameters()), *(i.grad for i in inputs)]


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (lambda: torch.nn.Linear(6, 3), (4, 6)),
        (lambda: torch.nn.Conv1d(4, 6, 3, padding=1, groups=2), (2, 4, 9)),
        (lambda: torch.nn.Conv2d(3, 5, 3, stride=2), (2, 3, 8, 8)),
        (lambda: torch.nn.ConvTranspose2d(3, 5, 3, bias=False), (2, 3, 5, 5)),
        (lambda: torch.nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)),
        (lambda: torch.nn.BatchNorm2d(3), (4, 3, 5, 5)),
        (lambda: torch.nn.GroupNorm(2, 4), (3, 4, 5)),
        (lambda: torch.nn.MaxPool2d(2), (2, 3, 6, 6)),
        (lambda: torch.nn.LSTM(5, 7, num_layers=2, bidirectional=True), (3, 2, 5)),
        (lambda: torch.nn.LSTM(5, 7, bias=False), (3, 2, 5)),
        (lambda: torch.nn.GRU(5, 7, num_layers=2), (3, 2, 5)),
        (lambda: torch.nn.GRU(5, 7, bias=False), (3, 2, 5)),
        (lambda: torch.nn.RNN(5, 7), (3, 2, 5)),
        (lambda: torch.nn.LSTMCell(5, 7), (2, 5)),
        (lambda: torch.nn.GRUCell(5, 7), (2, 5)),
        (lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (2, 5, 8)),
    ],
)  # fmt: skip
def test_layers_forward_and_backward(module, shape):
    torch.manual_seed(0)
    host = module()
    here = copy.deepcopy(host).to("openreg")
    x = torch.rand(shape)
    want = grads_of(host, x.clone().requires_grad_())
    got = grads_of(here, on_device(x, requires_grad=True))
    assert all(t.device.type == "openreg" for t in got)
    for a, b in zip(got, want, strict=True):
        assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", ["plain", "causal", "bias", "mask", "learned bias"])
def test_attention(case):
    torch.manual_seed(0)
    tensors = [torch.rand(2, 4, 6, 8) for _ in range(3)]
    bias = torch.rand(6, 6) > 0.3 if case == "mask" else torch.rand(6, 6)

    def run(device):
        q, k, v = (t.to(device).requires_grad_() for t in tensors)
        options = {"is_causal": True} if case == "causal" else {}
        inputs = [q, k, v]
        if case in ("bias", "mask", "learned bias"):
            options["attn_mask"] = bias.to(device)
            if case == "learned bias":
                inputs.append(options["attn_mask"].requires_grad_())
        out = functional.scaled_dot_product_attention(q, k, v, **options)
        return [out, *torch.autograd.grad(out.square().sum(), inputs)]

    for got, want in zip(run("openreg"), run("cpu"), strict=True):
        assert got.device.type == "openreg"
        assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"foreach": False}, {"fused": True}])
def test_optimizers(optimizer, options):
    def train(device, options):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 2).to(device)
        steps = optimizer(model.parameters(), lr=0.1, **options)
        for _ in range(3):
            steps.zero_grad()
            model(torch.ones(3, 4, device=device)).square().sum().backward()
            steps.step()
        return model.weight.detach().cpu()

    assert_close(train("openreg", options), train("cpu", {}), rtol=1e-4, atol=1e-5)


def test_parameters_stay_the_same_objects_when_a_module_moves():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(2, 2, bias=False) for _ in range(2)]
    model = torch.nn.Sequential(*layers)
    layers[1].weight = layers[0].weight  # tied
    weight = layers[0].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.to("openreg")
    assert layers[1].weight is layers[0].weight is weight
    assert weight.device == torch.device("openreg:0")
    assert weight.is_leaf
    model(torch.ones(2, 2, device="openreg")).square().sum().backward()
    before = weight.detach().clone()
    optimizer.step()
    assert not torch.equal(weight, before)
    model.cpu()
    assert layers[1].weight is weight
    assert weight.device.type == weight.grad.device.type == "cpu"
    weight.data = torch.zeros(2, 2, device="openreg")
    assert weight.device.type == "openreg"


def test_saving_and_loading(tmp_path):
    tensors = [torch.arange(4.0, device="openreg:1"), torch.tensor(1.5, device="openreg")]
    tensors.append(tensors[0][1:])
    torch.save(tensors, tmp_path / "tensors.pt")
    loaded = torch.load(tmp_path / "tensors.pt", weights_only=True)
    assert [t.device for t in loaded] == [t.device for t in tensors]
    assert [t.tolist() for t in loaded] == [t.tolist() for t in tensors]
    assert loaded[2].untyped_storage().data_ptr() == loaded[0].untyped_storage().data_ptr()
    on_host = torch.load(tmp_path / "tensors.pt", weights_only=True, map_location="cpu")
    assert {t.device.type for t in on_host} == {"cpu"}
