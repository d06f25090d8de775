"""Every operator in NumPy gives the CPU's values, data types and shapes."""

from __future__ import annotations

import re

import pytest

FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int64", "int32", "uint8")
SIGNED = ("int64", "int32")

# Expressions over the names of compare.inputs(), by the data types that they are compared in.
EXPRESSIONS = {
    (*FLOATS, *HALVES, *COMPLEX): """
        a.cos(); a.cosh(); a.sin(); a.sinh(); a.tan(); a.tanh(); a.exp(); a.expm1(); a.exp2()
        a.log(); a.log10(); a.log1p(); a.log2(); a.sqrt(); a.rsqrt(); a.reciprocal(); a.sigmoid()
        F.silu(a); a.acos(); a.acosh(); a.asin(); a.asinh(); a.atan(); a.atanh(); a.sinc()
        torch.lerp(a, b, 0.25); torch.lerp(a, b, every); torch.addcdiv(a, b, row, value=0.5)
        a.mean(); a.mean(0); a.mean((0, 1), keepdim=True); a.std(1); a.var(0, correction=0)
        torch.var_mean(a, 1, keepdim=True); torch.std_mean(a, 0); a.var()
        torch.linalg.vector_norm(a); torch.linalg.vector_norm(a, 1, 0)
        torch.linalg.vector_norm(a, float("inf")); torch.linalg.vector_norm(a, 0, 1, keepdim=True)
        torch.linalg.vector_norm(a, 3); a / b; a / number; a / 2; 2 / a; a ** 2; a ** 0.5; 2 ** a
        a ** b; a.isnan(); batch[:1, :0].abs(); number.sigmoid().masked_fill(mask[0, 0], 2)
        number.logsumexp(0); square.mm(square.mH); row.conj().dot(row); batch @ batch.mH; a.mH @ a
        torch.mm(square.mH, square, out=torch.empty(3, 3, dtype=dtype, device=device).conj())
        torch.vdot(row, row.conj()); torch.addmm(square.conj(), a, b.mH, beta=2); a.cov()
        a.isreal(); torch.mm(square.conj(), square.mH); square.mH.sum(0)
    """,
    (*FLOATS, *HALVES, *COMPLEX, *SIGNED): """
        a + b; a + row; a + column; a - b; a * b; a * number; number + a; a + 1; 1 - a; 2 * a
        torch.add(a, b, alpha=2); torch.sub(a, row, alpha=3); torch.rsub(a, b, alpha=2)
        torch.addcmul(a, b, row, value=2); a.neg(); a.abs(); a.sgn(); a.conj().resolve_conj()
        a.conj_physical(); a == b; a == 1; a != b; a != 1; a.logical_not()
        torch.logical_and(a, b); torch.logical_or(a, b); torch.logical_xor(a, b)
        a.sum(); a.sum(0); a.sum((0, 1)); a.sum(1, keepdim=True); a.sum(dtype=torch.complex128)
        none.sum(); none.sum(0); a.prod(0); a.cumsum(1); a.cumprod(0); number.cumsum(0); a.any()
        a.any(0); a.all(); a.all(1, keepdim=True); a.any((0, 1)); every + every; (a + b).T + b.T
        a.mm(b.T); a @ row; batch @ batch.mT; torch.bmm(batch, batch.mT); row.dot(row)
        torch.vdot(row, row); torch.addmm(square, a, b.T, beta=2, alpha=3)
        torch.addmm(square, a, b.T, beta=0); torch.addmv(column[:, 0], a, row)
        torch.baddbmm(square, batch, batch.mT, alpha=2); torch.ger(row, row); none.T @ none
        torch.where(mask, a, b); torch.where(mask, a, 2); torch.where(a == b, a, row)
        torch.cat((a, b)); torch.cat((a, none), 0); torch.cat((a, row[:0]), 1); torch.stack((a, b))
        a[index]; a[:, index[:2]]; a[index, index]; a[mask]; a[a == b]; a[None, 1:, ..., -1]
        a.index_select(1, index); number.index_select(0, index[1]); a.masked_select(mask[:, :4])
        a.gather(1, index[:, None]); number.gather(0, index[1]); a.nonzero(); (a == b).nonzero()
        a.scatter(1, index[:, None], b); a.scatter(1, index[:, None], 7)
        a.scatter_add(1, index[:, None], b); number.scatter(0, index[1], number)
        a.index_add(0, index, b, alpha=2); a.index_put((index,), b, accumulate=True)
        a.index_put((index[:2],), row); a.masked_fill(mask, 5); a.masked_fill(mask, number)
        a.flip(0); a.flip((0, 1)); a.roll(1, 0); a.roll((1, 2), (0, 1)); a.roll(3)
        square.tril(); batch.triu(1); a.clone(); a.equal(b); a.equal(a); a.equal(row)
        torch.tensordot(batch, batch, ([0, 2], [0, 2])); torch.einsum("ij,kj->ik", a, b)
    """,
    (*FLOATS, *HALVES, *INTEGERS): """
        a < b; a < 1; a <= b; a <= 1; a > b; a > 1; a >= b; a >= 1
        torch.maximum(a, b); torch.minimum(a, row); torch.fmax(a, b); torch.fmin(a, b)
        a.clamp(1, 2); a.clamp(min=1); a.clamp(max=1); a.clamp(b, row); a.clamp(min=b)
        a.clamp(max=b); a.clamp_min(1); a.clamp_max(1); a.clamp_min(b); a.clamp_max(b)
        a.sign(); a.floor(); a.ceil(); a.trunc()
        a.round(); a.relu(); a.signbit(); a.isposinf(); a.isneginf(); a.remainder(b); a.remainder(2)
        a.fmod(b); a.fmod(2); a // b; a // 2; torch.div(a, b, rounding_mode="trunc")
        torch.div(a, b, rounding_mode="floor"); torch.div(a, b); torch.floor_divide(a, b)
        torch.atan2(a, b); torch.copysign(a, b); a.sqrt(); a.amax(1); a.amin((0, 1)); a.argmax()
        a.argmax(0); a.argmin(1, keepdim=True); a.max(); a.min(); a.max(0); a.min(1, keepdim=True)
        number.max(0); number.argmax(); a.sort(stable=True)
        a.sort(dim=0, descending=True, stable=True); number.sort(); a.topk(1)[0]
        a.T.topk(2, largest=False)[0]; a.mean(dtype=torch.float64)
    """,
    FLOATS: """
        torch.var(a, 1, out=torch.empty(0, dtype=dtype, device=device))
        torch.std(a, 1, out=torch.empty(0, dtype=dtype, device=device))
        torch.linalg.vector_norm(a, dtype=torch.float64); torch.linalg.vector_norm(a, 3, 0, True)
        torch.lerp(a, b, 1); torch.lerp(a, b, 0); torch.lerp(a, b, 0.75)
        a.frac(); torch.hypot(a, b); torch.logaddexp(a, b); torch.logaddexp2(a, b)
        F.softmax(a, 1); F.softmax(number, 0); F.softmax(none, 1)
        F.log_softmax(a, 0); F.nll_loss(a, index); F.nll_loss(a, index, row)
        F.nll_loss(a, index, reduction="none"); F.nll_loss(a, index, reduction="sum")
        F.nll_loss(a, index, ignore_index=2); F.nll_loss(row, index[0]); F.cross_entropy(a, index)
        F.batch_norm(batch, column[:, 0], column[:, 0] ** 2)
        F.batch_norm(batch, None, None, column[:, 0], column[:, 0], training=True)
        F.layer_norm(a, (4,), row, row); F.group_norm(batch.mT, 2); F.embedding(index, a)
        F.linear(a, b, column[:, 0]); F.gelu(a); F.avg_pool1d(batch, 2); F.max_pool1d(batch, 2)
        F.conv1d(batch, batch[:, :, :2]); F.conv1d(batch, batch[:1, :, :3], stride=2, padding=2)
        F.conv1d(batch, batch[:1, :, :2], row[:1], dilation=2)
        F.conv1d(batch[:, :2], batch[:, :1, :2], groups=2)
        F.conv2d(batch[:, :, None], batch[:, :, None, :3], padding=(1, 2))
        F.conv3d(batch[:, None, None], a[:, None, None, None, :3], padding=(0, 1, 1))
        F.conv_transpose1d(batch, batch[0, :, None, :2]); F.conv_transpose1d(batch, a[:, None])
        F.conv_transpose2d(batch[:, :, None], a[:, None, None], None, 2, (0, 1), (1, 0))
        F.conv_transpose1d(batch[:, :2], batch[0, :2, None, :2], row[:2], 2, groups=2)
    """,
    (*FLOATS, "int64"): """
        torch.add(a, b, out=torch.empty(0, dtype=dtype, device=device))
        torch.add(a, 1, out=torch.empty(3, 4, dtype=torch.float64, device=device))
        torch.mul(a, b, out=torch.zeros(4, 6, dtype=dtype, device=device).T[:3])
        torch.floor_divide(a, b, out=torch.empty(0, dtype=dtype, device=device))
        torch.eq(a, b, out=torch.empty(0, dtype=torch.int32, device=device))
        torch.max(a, 0, out=(torch.empty(0, dtype=dtype, device=device), index[:0]))
        a.add_(b), a; a.mul_(row), a; a[1:].sub_(b[:2]), a; a.T.add_(every.T), a; a.clamp_(0, 1), a
        a.relu_(), a; a.neg_(), a; a[:, 1].fill_(7), a; a.zero_(), a; a.masked_fill_(mask, 1), a
        a.index_add_(0, index, b), a; a.copy_(row), a; a.copy_(mask), a; a.eq_(b), a
        a.scatter_(1, index[:, None], 9), a; a.__setitem__((0, slice(1, 3)), 5), a
        a.__setitem__(mask, number), a; a.tril_(), a; a.floor_divide_(2), a; a.t_(), a
    """,
    (*INTEGERS, "bool"): """
        ~a; a & b; a | b; a ^ b; a & 1; a.any(1); a.all(0); a.sum(); a.logical_not(); a == b
        a.max(); a.sort(stable=True); a.cumsum(0); a.T.contiguous(); torch.cat((a, b)); a[mask]
    """,
    SIGNED: """
        torch.gcd(a, b); torch.lcm(a, b); a.bitwise_left_shift(1); a.bitwise_right_shift(abs(b))
        a ** 2; a ** abs(b)
        torch.pow(2, abs(a)); torch.pow(a, b)
    """,
    ("bool",): """
        a + b; a * b; torch.where(mask, a, b); a.max(0)[0]; a.sign(); a < b; a.any(1)
        torch.maximum(a, b); a.signbit(); a + 1; a * 2.5; a.nonzero()
    """,
}


# The device computes in float32 and rounds once; the CPU rounds intermediate results of some.
TOLERANCE = {
    "float16": {"rtol": 2e-3, "atol": 2e-3},
    "bfloat16": {"rtol": 2e-2, "atol": 2e-2},
}


def split(text):
    return [expression.strip() for expression in re.split("[;\n]", text) if expression.strip()]


CASES = [
    pytest.param(expression, dtype, id=f"{expression}-{dtype}")
    for dtypes, text in EXPRESSIONS.items()
    for expression in split(text)
    for dtype in dtypes
]


@pytest.mark.parametrize(("expression", "dtype"), CASES)
def test_equals_the_cpu(device, expression, dtype):
    assert device(f"equal({expression!r}, {dtype!r}, **{TOLERANCE.get(dtype, {})})") is True


GRADIENTS = """
    a.sigmoid(); a.tanh(); a.relu(); F.threshold(a, 0.5, 0.1); a.exp() * b.sin() + row; a / b; a**3
    abs(a) ** b; a.clamp(-1, 1); torch.where(mask, a, b); torch.maximum(a, b); a.abs().sqrt()
    torch.lerp(a, b, 0.3); torch.addcmul(a, b, row); torch.addcdiv(a, b, row); torch.atan2(a, b)
    a.sum(0); a.mean(1); a.prod(0); a.var(); a.std(1); a.amax(1); a.max(0)[0]; a.sort(1)[0]
    a.cumsum(1); a.cumprod(0); a.logsumexp(1); torch.linalg.vector_norm(a, dim=1); a.topk(2)[0]
    a @ b.T; batch @ batch.mT; torch.addmm(square, a, b.T, beta=2); torch.einsum("ij,kj->ik", a, b)
    a[index]; a[mask]; a.gather(1, index[:, None]); a.index_select(1, index); torch.cat((a, b))
    torch.stack((a, b)); a.scatter_add(1, index[None], b[:1, :3]); a.index_put((index,), b)
    a.expand(2, 3, 4); a.T.reshape(-1); a[1:, ::2]; a.roll(1, 0); a.flip(0); a.tril()
    a.masked_fill(mask, 0); F.embedding(index, a); F.embedding(index, a, padding_idx=2)
    F.embedding(index, a, scale_grad_by_freq=True); F.softmax(a, 1); F.log_softmax(a, 0)
    F.cross_entropy(a, index); F.cross_entropy(a, index, row.detach(), reduction="sum")
    F.cross_entropy(a, index, ignore_index=2); F.nll_loss(a, index, reduction="none")
    F.mse_loss(a, b); F.gelu(a); F.layer_norm(a, (4,), row, row); F.group_norm(batch.mT, 2)
    F.batch_norm(batch, None, None, column[:, 0], row[:3], True)
    F.batch_norm(batch, column[:, 0].detach(), row[:3].detach() ** 2, row[:3], row[1:])
    F.batch_norm(batch, column[:, 0].detach(), row[:3].detach() ** 2, training=False)
    F.conv1d(batch, batch[:, :, :2], row[:2], 2, 1)
    F.conv1d(batch[:, :2], a[:2, None, :2], groups=2)
    F.conv2d(batch[:, :1, None], a[:, None, None, :3], padding=(0, 2), dilation=(1, 2))
    F.conv_transpose1d(batch, a[:, None], row[:1], 2, 1, 1); F.max_pool1d(batch, 2)
    F.conv_transpose2d(batch[:, :, None], a[:, None, None], None, 2, (0, 1), (1, 0))
    F.avg_pool1d(batch, 2); F.linear(a, b, column[:, 0]); F.dropout(a, 0.5)
    F.scaled_dot_product_attention(batch, batch, batch); a.to(torch.float32); torch.vdot(row, row)
    torch.lstm_cell(a[:, :2], (a[:, :1], b[:, :1]), a.mT[:4, :2], row[:, None], row, row)[1]
    torch.lstm_cell(a[:, :2], (a[:, :1], b[:, :1]), a.mT[:4, :2], row[:, None], row, row)[0]
    torch.gru_cell(a, column, b, column, column[:, 0], row[:3]); nn.GRUCell(4, 2).to(a)(a)
    nn.LSTM(4, 2, 2, bidirectional=True).to(a)(batch)[0]; nn.GRU(4, 2).to(a)(batch)[0]
    nn.LSTM(4, 2, bias=False).to(a)(batch)[1][1]; nn.GRU(4, 2, bias=False).to(a)(batch)[0]
"""


@pytest.mark.parametrize("expression", split(GRADIENTS))
def test_gradients_equal_the_cpu(device, expression):
    assert device(f"gradients_equal({expression!r})") is True


def test_data_types_mix_as_on_the_cpu(device):
    types = ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
    for left in types:
        for right in types:
            if {left, right} == {"float16", "complex64"}:
                continue  # together ComplexHalf, of which PyTorch warns that it is experimental
            for expression in ("a + b", "a * number", "row == column", "number + a", "a * 2.5"):
                different = device(
                    f"""
                    names = inputs(torch.{left})
                    names |= {{n: inputs(torch.{right})[n] for n in ("b", "number", "column")}}
                    got, expected = (results("{expression}", d, names) for d in ("ndarray", "cpu"))
                    [x.dtype for x in got] != [x.dtype for x in expected]
                    """
                )
                assert different is False, (expression, left, right)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("a + torch.ones(3, 4)", "RuntimeError: .*same device.* cpu"),
        ("a @ torch.ones(4, 3)", "RuntimeError: .*same device.* cpu and ndarray:0"),
        ("a + b.T", "RuntimeError: The size of tensor a"),
        (
            "torch.add(a, b.T, out=a)",
            "RuntimeError: aten::add.out: operands could not be broadcast",
        ),
        ("a @ b", "RuntimeError: mat1 and mat2 shapes"),
        ("torch.add(a, 1.5, out=index)", "RuntimeError: result type torch.float32 can't be cast"),
        ("index.add_(1.5)", "RuntimeError: result type Float can't be cast"),
        ("index // 0", "RuntimeError: ZeroDivisionError"),
        ("index % torch.tensor(0)", "RuntimeError: ZeroDivisionError"),
        ("a[index + 1]", "IndexError: index 3 is out of bounds"),
        ("a.index_select(0, index - 1)", "IndexError: index -1 is out of bounds"),
        ("a.gather(0, index[None] + 1)", "IndexError: index 3 is out of bounds"),
        ("F.nll_loss(a, index + 2)", "IndexError: Target 4 is out of bounds"),
        ("F.embedding(index + 5, a)", "IndexError: index 7 is out of bounds"),
        ("none.max()", "RuntimeError: .*dim to be specified for input.numel"),
        ("row.expand(3, 4).add_(1)", "RuntimeError: unsupported operation: more than one element"),
        (
            "a.masked_fill_(index.expand(4, 3).T, 1)",
            "RuntimeError: masked_fill_ only supports bool",
        ),
        ("torch.arange(0, 3, 0, device=device)", "RuntimeError: step must be nonzero"),
        ("torch.arange(3, 0, device=device)", "RuntimeError: upper bound and lower bound"),
        ("torch.empty(-1, device=device)", "RuntimeError: Trying to create tensor with negative"),
        (
            "torch.empty(2, device='ndarray:1')",
            "AcceleratorError: invalid device ordinal: there is no",
        ),
        (
            "torch.empty(2**55, device=device)",
            "OutOfMemoryError: ndarray:0: 144115188075855872 bytes",
        ),
        ("torch.empty(2**62, device=device)", "OutOfMemoryError: ndarray:0: "),
        ("a.view(5)", "RuntimeError: shape '.5.' is invalid"),
        ("a.T.view(12)", "RuntimeError: view size is not compatible"),
        ("a.as_strided((9, 9), (1, 1), 9)", "RuntimeError: setStorage: .*out of bounds"),
        ("(a * 1j) < 1", "NotImplementedError: .*not implemented for 'ComplexF"),
    ],
)
def test_errors_are_clear_and_leave_the_device_usable(device, raises, code, error):
    with raises(error):
        device(f"eval({code!r}, on('ndarray', inputs(torch.float32)))")
    assert device("equal('a + b')") is True


def test_every_function_of_the_tables_is_compared(device):
    """The expressions above, run once more on their own, reach all of them."""
    values = [
        (expression, dtype)
        for dtypes, text in EXPRESSIONS.items()
        for dtype in {dtypes[0], "complex64"}.intersection(dtypes)
        for expression in split(text)
    ]
    uncalled = device(
        f"""
        from devhost_numpy import convolution, elementwise, indexing, linalg, recurrent, reductions
        from devhost_numpy import training
        modules = (convolution, elementwise, indexing, linalg, recurrent, reductions, training)
        tables = [t for m in modules for n, t in vars(m).items() if n.isupper() and type(t) is dict]
        tables.remove(reductions.DTYPES)
        registered = {{name for table in tables for name in table}}
        CALLED.clear()
        for expression, dtype in {values}:
            results(expression, "ndarray", inputs(getattr(torch, dtype)))
        for expression in {split(GRADIENTS)}:
            gradients_equal(expression)
        [len(registered), ", ".join(sorted(registered - CALLED))]
        """
    )
    assert uncalled[0] > 150
    assert uncalled[1] == ""
