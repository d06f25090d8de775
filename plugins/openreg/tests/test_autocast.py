"""torch.autocast and torch.amp.GradScaler on the device."""

import copy
import gc
import threading
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional

from devhost_openreg import _C

DEVICE = "openreg"
LOWER = (torch.bfloat16, torch.float16)


def tensor(*size, dtype=torch.float32, seed=0):
    values = torch.rand(*size, generator=torch.Generator().manual_seed(seed))
    return values.to(DEVICE, dtype)


def test_the_lists_are_cudas():
    torch.openreg.init()  # registers the casts
    registered = torch._C._dispatch_get_registrations_for_dispatch_key
    cuda, ours = (set(registered(f"Autocast{name}")) for name in ("CUDA", "PrivateUse1"))
    assert len(ours) > 100
    assert ours - cuda == set()
    # cuDNN's operators exist on no other device.
    assert cuda - ours == {"aten::cudnn_convolution", "aten::cudnn_convolution_transpose"}


IMAGE, FILTER, MATRIX, BATCH, HEADS = (
    (2, 3, 8, 8),
    (4, 3, 3, 3),
    (6, 6),
    (2, 6, 6),
    (1, 2, 6, 8),
)

# The operators that CPU autocast treats the same way: function and sizes of its arguments.
LOWER_PRECISION = {
    "mm": (torch.mm, (MATRIX, MATRIX)),
    "matmul": (torch.matmul, (BATCH, MATRIX)),
    "bmm": (torch.bmm, (BATCH, BATCH)),
    "addmm": (torch.addmm, (MATRIX, MATRIX, MATRIX)),
    "baddbmm": (torch.baddbmm, (BATCH, BATCH, BATCH)),
    "addbmm": (torch.addbmm, (MATRIX, BATCH, BATCH)),
    "vecdot": (torch.linalg.vecdot, (MATRIX, MATRIX)),
    "linear": (functional.linear, (MATRIX, MATRIX, (6,))),
    "conv1d": (functional.conv1d, ((2, 3, 8), (4, 3, 3))),
    "conv2d": (functional.conv2d, (IMAGE, FILTER, (4,))),
    "conv3d": (functional.conv3d, ((1, 2, 4, 4, 4), (3, 2, 3, 3, 3))),
    "conv_transpose2d": (functional.conv_transpose2d, (IMAGE, (3, 4, 3, 3))),
    "attention": (functional.scaled_dot_product_attention, (HEADS, HEADS, HEADS)),
}
FLOAT32 = {
    "mse_loss": (functional.mse_loss, (MATRIX, MATRIX)),
    "huber_loss": (functional.huber_loss, (MATRIX, MATRIX)),
    "prod": (lambda x: x.prod(1), (MATRIX,)),
    "cdist": (torch.cdist, (MATRIX, MATRIX)),
    "kl_div": (lambda x, y: functional.kl_div(x, y, reduction="sum"), (MATRIX, MATRIX)),
    "cross entropy": (lambda x: functional.nll_loss(x, torch.arange(6).to(x.device)), (MATRIX,)),
    "with logits": (functional.binary_cross_entropy_with_logits, (MATRIX, MATRIX)),
}


def run_with_gradients(function, sizes, device, dtype, inputs_of):
    leaves = [
        tensor(*size, dtype=inputs_of, seed=i).to(device).requires_grad_()
        for i, size in enumerate(sizes)
    ]
    with torch.autocast(device, dtype=dtype):
        result = function(*leaves)
    result.float().sum().backward()
    return [result.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("dtype", LOWER, ids=str)
@pytest.mark.parametrize("name", [*LOWER_PRECISION, *FLOAT32])
def test_results_and_gradients_are_those_of_cpu_autocast(name, dtype):
    function, sizes = (LOWER_PRECISION | FLOAT32)[name]
    inputs_of = torch.float32 if name in LOWER_PRECISION else dtype
    results, expected = (
        run_with_gradients(function, sizes, device, dtype, inputs_of) for device in (DEVICE, "cpu")
    )
    assert results[0].dtype == (dtype if name in LOWER_PRECISION else torch.float32)
    for result, want in zip(results, expected, strict=True):
        assert result.dtype == want.dtype
        assert torch.equal(result.cpu(), want)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        # In float32, as the CPU does not
        (lambda h, s: h.exp(), torch.float32),
        (lambda h, s: h**2, torch.float32),
        (lambda h, s: functional.layer_norm(h, (6,)), torch.float32),
        (lambda h, s: h.norm(2, 1), torch.float32),
        # In float32 by the operator's own dtype argument, which is respected if it is given
        (lambda h, s: h.softmax(1), torch.float32),
        (lambda h, s: h.softmax(1, dtype=torch.float16), torch.float16),
        (lambda h, s: h.sum(), torch.float32),
        (lambda h, s: h.cumsum(0), torch.float32),
        # In the widest type
        (lambda h, s: torch.atan2(h, s), torch.float32),
        (lambda h, s: torch.atan2(h, h), torch.float16),
        (lambda h, s: torch.addcmul(h, s, h), torch.float32),
        (lambda h, s: torch.dot(h[0], s[0]), torch.float32),
        # Left alone: PyTorch's own type promotion
        (lambda h, s: h + h, torch.float16),
        (lambda h, s: h.relu(), torch.float16),
        (lambda h, s: torch.mm(s.double(), s.double()), torch.float64),
        (lambda h, s: h.to(torch.int32) * 2, torch.int32),
    ],
)
def test_types(function, dtype):
    half, single = tensor(*MATRIX, dtype=torch.float16), tensor(*MATRIX)
    with torch.autocast(DEVICE, dtype=torch.float16):
        assert function(half, single).dtype == dtype


def test_in_place_and_out_are_not_cast():
    a, b = tensor(*MATRIX), tensor(*MATRIX)
    with torch.autocast(DEVICE):
        assert torch.mm(a, b, out=torch.empty_like(a)).dtype == torch.float32
        assert a.addmm_(a, b).dtype == torch.float32


def test_binary_cross_entropy_is_refused():
    x = tensor(*MATRIX)
    with torch.autocast(DEVICE), pytest.raises(RuntimeError, match="with_logits"):
        functional.binary_cross_entropy(x, x)
    with torch.autocast(DEVICE, enabled=False):
        assert functional.binary_cross_entropy(x, x).dtype == torch.float32


@pytest.mark.parametrize("dtype", LOWER, ids=str)
@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.LSTM(8, 8, 2),
        lambda: nn.GRU(8, 8),
        lambda: nn.RNN(8, 8),
        lambda: nn.LSTMCell(8, 8),
        lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)),
        lambda: nn.Sequential(nn.Conv1d(3, 4, 1), nn.Flatten(), nn.Linear(32, 8)),
    ],
    ids=["LSTM", "GRU", "RNN", "LSTMCell", "MLP", "CNN"],
)
def test_layers_train_with_float32_gradients(make, dtype):
    torch.manual_seed(0)
    module = make().to(DEVICE)
    inputs = tensor(5, 8) if isinstance(module, nn.LSTMCell) else tensor(5, 3, 8)
    with torch.autocast(DEVICE, dtype=dtype):
        output = module(inputs)
    output = output[0] if isinstance(output, tuple) else output
    assert output.dtype == dtype
    output.float().square().sum().backward()
    for parameter in module.parameters():
        assert parameter.grad.dtype == torch.float32
        assert parameter.grad.isfinite().all()
    full = copy.deepcopy(module)(inputs)
    full = full[0] if isinstance(full, tuple) else full
    torch.testing.assert_close(output.float(), full, rtol=0.02, atol=0.02)


def test_regions():
    a = tensor(*MATRIX)
    types = []
    assert not torch.is_autocast_enabled(DEVICE)
    with torch.autocast(DEVICE):  # the default type is CUDA's
        types.append((a @ a).dtype)
        assert torch.is_autocast_enabled(DEVICE)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            types.append((a @ a).dtype)
            with torch.autocast(DEVICE, enabled=False):
                types.append((a @ a).dtype)
        types.append((a @ a).dtype)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            types.append((a @ a).dtype)
    types.append((a @ a).dtype)
    half, brain, single = torch.float16, torch.bfloat16, torch.float32
    assert types == [half, brain, single, half, half, single]


def test_a_region_ends_with_an_exception():
    with pytest.raises(KeyError), torch.autocast(DEVICE):
        raise KeyError
    assert not torch.is_autocast_enabled(DEVICE)


def test_as_a_decorator():
    @torch.autocast(DEVICE, dtype=torch.bfloat16)
    def product(a):
        return a @ a

    assert product(tensor(*MATRIX)).dtype == torch.bfloat16


def test_is_per_thread():
    seen = []
    with torch.autocast(DEVICE):
        thread = threading.Thread(target=lambda: seen.append(torch.is_autocast_enabled(DEVICE)))
        thread.start()
        thread.join()
    assert seen == [False]


def casts_of(output):
    """Return the conversions in the graph of a result."""
    nodes, found = [output.grad_fn], set()
    while nodes:
        node = nodes.pop()
        if "ToCopy" in node.name():
            found.add(node)
        nodes += [child for child, _ in node.next_functions if child is not None]
    return found


@pytest.mark.parametrize(("cache", "casts"), [(True, 1), (False, 2)])
def test_a_weight_is_cast_once_in_a_region(cache, casts):
    weight = tensor(*MATRIX).requires_grad_()
    with torch.autocast(DEVICE, cache_enabled=cache):
        outputs = [functional.linear(tensor(*MATRIX), weight) for _ in range(2)]
    assert len(set.union(*map(casts_of, outputs))) == casts
    sum(output.float().sum() for output in outputs).backward()
    assert weight.grad.dtype == torch.float32


def test_the_weight_cache_ends_with_the_region():
    weight = tensor(*MATRIX).requires_grad_()
    gc.collect()
    before = torch.accelerator.memory_allocated()
    with torch.autocast(DEVICE):
        functional.linear(tensor(*MATRIX), weight)
        assert torch.accelerator.memory_allocated() > before
    gc.collect()
    assert torch.accelerator.memory_allocated() == before
    gone = weakref.ref(weight)
    del weight
    gc.collect()
    assert gone() is None
    # A changed weight is cast again in the next region.
    weight = tensor(*MATRIX).requires_grad_()
    with torch.no_grad():
        weight.fill_(2)
    with torch.autocast(DEVICE):
        assert functional.linear(torch.ones(1, 6, device=DEVICE), weight).eq(12).all()


def test_an_unsupported_type_warns_once_and_runs_in_full_precision():
    a = tensor(*MATRIX)
    with pytest.warns(UserWarning, match="autocast") as warned:
        region = torch.autocast(DEVICE, dtype=torch.float64)
    with region:
        assert (a @ a).dtype == torch.float32
        assert not torch.is_autocast_enabled(DEVICE)
    (message,) = [str(warning.message) for warning in warned]
    for words in (DEVICE, "torch.float64", "torch.bfloat16", "torch.float16"):
        assert words in message


def test_what_torch_says_about_autocast():
    assert torch.amp.is_autocast_available(DEVICE)
    assert torch.get_autocast_dtype(DEVICE) == torch.float16
    assert torch.openreg.get_amp_supported_dtype() == [torch.bfloat16, torch.float16]
    assert torch.openreg.is_bf16_supported()
    try:
        torch.set_autocast_dtype(DEVICE, torch.bfloat16)
        with torch.autocast(DEVICE):
            assert (tensor(*MATRIX) @ tensor(*MATRIX)).dtype == torch.bfloat16
    finally:
        torch.set_autocast_dtype(DEVICE, torch.float16)


def test_custom_autograd_function():
    seen = []

    class Square(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=DEVICE)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            seen.append((x @ x).dtype)
            return x @ x

        @staticmethod
        @torch.amp.custom_bwd(device_type=DEVICE)
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            seen.append((x @ x).dtype)  # in autocast's state of the forward pass
            return grad @ x.t() + x.t() @ grad

    class Float32(Square):
        forward = staticmethod(
            torch.amp.custom_fwd(device_type=DEVICE, cast_inputs=torch.float32)(
                lambda ctx, x: (ctx.save_for_backward(x), seen.append(x.dtype), x @ x)[-1]
            )
        )

    x = tensor(*MATRIX).requires_grad_()
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        output = Square.apply(x)
    output.float().sum().backward()
    assert seen == [torch.bfloat16, torch.bfloat16]
    assert x.grad.dtype == torch.float32

    seen.clear()
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        assert Float32.apply(tensor(*MATRIX, dtype=torch.float16)).dtype == torch.float32
    assert seen == [torch.float32]


def test_custom_operator():
    @torch.library.custom_op("openreg_autocast_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    torch.library.register_autocast(twice, DEVICE, torch.bfloat16)
    with torch.autocast(DEVICE):
        assert twice(tensor(3)).dtype == torch.bfloat16
    assert twice(tensor(3)).dtype == torch.float32


def test_checkpoint_recomputes_under_the_same_autocast():
    from torch.utils.checkpoint import checkpoint

    layer = nn.Linear(6, 6).to(DEVICE)
    inputs = tensor(*MATRIX).requires_grad_()
    types = []

    def forward(x):
        types.append((x.detach() @ x.detach()).dtype)
        return layer(x)

    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        output = checkpoint(forward, inputs, use_reentrant=False)
    output.float().sum().backward()
    assert types == [torch.bfloat16, torch.bfloat16]


# ---- GradScaler ----


def scaled(optimizer_of=lambda p: torch.optim.SGD(p, 0.1), **options):
    parameter = nn.Parameter(torch.ones(2, device=DEVICE))
    return parameter, optimizer_of([parameter]), torch.amp.GradScaler(DEVICE, **options)


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_a_bad_gradient_skips_the_step_and_halves_the_scale(bad):
    parameter, optimizer, scaler = scaled(init_scale=4.0)
    scaler.scale(parameter.sum() * bad).backward()
    scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == [1, 1]
    assert scaler.get_scale() == 2.0

    optimizer.zero_grad()
    scaler.scale(parameter.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    torch.testing.assert_close(parameter.detach().cpu(), torch.full((2,), 0.9))
    assert scaler.get_scale() == 2.0


def test_the_scale_grows_after_the_interval():
    parameter, optimizer, scaler = scaled(init_scale=4.0, growth_interval=3, growth_factor=2.0)
    scales = []
    for _ in range(6):
        optimizer.zero_grad()
        scaler.scale(parameter.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [4, 4, 8, 8, 8, 16]


def test_unscale_before_clipping():
    parameter, optimizer, scaler = scaled(init_scale=1024.0)
    scaler.scale(parameter.sum() * 30).backward()
    assert parameter.grad.tolist() == [30 * 1024, 30 * 1024]
    scaler.unscale_(optimizer)
    assert parameter.grad.tolist() == [30, 30]
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_([parameter], 1.0)
    assert norm.item() == pytest.approx(30 * 2**0.5)
    scaler.step(optimizer)
    torch.testing.assert_close(
        parameter.detach().cpu(), torch.full((2,), 1 - 0.1 / 2**0.5), rtol=1e-5, atol=0
    )


@pytest.mark.parametrize(
    "options", [{"foreach": True}, {"fused": True}, {"foreach": False}], ids=str
)
def test_the_optimizers_of_every_kind(options):
    parameter, optimizer, scaler = scaled(
        lambda p: torch.optim.AdamW(p, 0.1, **options), init_scale=4.0
    )
    reference = nn.Parameter(torch.ones(2))
    expected = torch.optim.AdamW([reference], 0.1)
    for factor in (1.0, float("inf"), 2.0):
        optimizer.zero_grad()
        scaler.scale(parameter.sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        if factor < float("inf"):
            expected.zero_grad()
            (reference.sum() * factor).backward()
            expected.step()
    torch.testing.assert_close(parameter.detach().cpu(), reference.detach())
    assert scaler.get_scale() == 2.0


def test_gradients_on_two_devices(other_device):
    parameters = [nn.Parameter(torch.ones(2, device=device)) for device in (DEVICE, other_device)]
    optimizer = torch.optim.SGD(parameters, 0.1)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=4.0)
    for bad in (float("inf"), 1.0):  # on one device of the two
        optimizer.zero_grad()
        total = parameters[0].sum() + (parameters[1].sum() * bad).to(DEVICE)
        scaler.scale(total).backward()
        scaler.step(optimizer)
        scaler.update()
    torch.testing.assert_close([p.detach().cpu() for p in parameters], [torch.full((2,), 0.9)] * 2)
    assert scaler.get_scale() == 2.0


def test_the_state_is_saved_and_restored():
    _, _, scaler = scaled(init_scale=4.0)
    scaler.scale(torch.ones((), device=DEVICE))
    other = torch.amp.GradScaler(DEVICE)
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    assert other.get_scale() == 4.0


def test_the_two_kernels_are_the_devices_own():
    parameter, optimizer, scaler = scaled(init_scale=4.0)
    _C.reset_fallback_stats()
    scaler.scale(parameter.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert [name for name in _C.fallback_stats() if "amp" in name] == []
