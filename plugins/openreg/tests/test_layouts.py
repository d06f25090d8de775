"""Sparse, nested and quantized tensors: the CPU's results, in every part on the device."""

import io

import pytest
import torch
from torch.testing import assert_close

DENSE = torch.tensor([[0.0, 2, 0, 1], [3, 0, 0, 0], [0, 0, 0, 0], [0, 4, 5, 0]])
LAYOUTS = {
    "COO": lambda t: t.to_sparse(),
    "CSR": lambda t: t.to_sparse_csr(),
    "CSC": lambda t: t.to_sparse_csc(),
    "BSR": lambda t: t.to_sparse_bsr((2, 2)),
    "BSC": lambda t: t.to_sparse_bsc((2, 2)),
}
# PyTorch's, at the first tensor of a kind in a process.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta state"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]


def parts_of(tensor):
    if tensor.layout == torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return tensor.ccol_indices(), tensor.row_indices(), tensor.values()


def assert_sparse_equal(got, want, device):
    """The same tensor, part by part, and every part on the device."""
    assert got.device == torch.device(device)
    assert (got.layout, got.shape, got.dtype) == (want.layout, want.shape, want.dtype)
    for a, b in zip(parts_of(got), parts_of(want), strict=True):
        assert a.device == torch.device(device)
        assert torch.equal(a.cpu(), b)


@pytest.mark.parametrize("convert", LAYOUTS.values(), ids=LAYOUTS)
def test_conversions_and_copies_in_every_direction(convert):
    host = convert(DENSE)
    here = convert(DENSE.to("openreg"))
    assert_sparse_equal(here, host, "openreg:0")
    assert_sparse_equal(host.to("openreg"), host, "openreg:0")
    assert_sparse_equal(here.to("openreg:1"), host, "openreg:1")
    assert_sparse_equal(here.cpu(), host, "cpu")
    assert_sparse_equal(here.clone(), host, "openreg:0")
    dense = here.to_dense()
    assert dense.device == torch.device("openreg:0")
    assert torch.equal(dense.cpu(), DENSE)


@pytest.mark.parametrize("convert", LAYOUTS.values(), ids=LAYOUTS)
def test_printing_says_where_it_is(convert):
    text = repr(convert(DENSE.to("openreg")))
    assert "device='openreg:0'" in text
    assert "size=(4, 4)" in text


@pytest.mark.parametrize("indices_on", ["cpu", "openreg"])
def test_coo_from_parts(indices_on):
    indices = torch.tensor([[0, 0, 1], [2, 2, 0]], device=indices_on)
    tensor = torch.sparse_coo_tensor(
        indices, torch.tensor([1.0, 2.0, 3.0], device="openreg"), (2, 3), device="openreg"
    )
    assert not tensor.is_coalesced()
    coalesced = tensor.coalesce()
    assert coalesced.is_coalesced()
    assert coalesced.indices().tolist() == [[0, 1], [2, 0]]
    assert coalesced.values().tolist() == [3, 3]
    assert coalesced.values().device == torch.device("openreg:0")


def test_csr_from_parts():
    tensor = torch.sparse_csr_tensor(
        torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.ones(2), (2, 2), device="openreg"
    )
    assert tensor.device == torch.device("openreg:0")
    assert tensor.to_dense().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    "operation",
    [
        lambda s, d: s + s,
        lambda s, d: s * 2,
        lambda s, d: s * s,
        lambda s, d: s @ d,
        lambda s, d: s @ d[0],
        lambda s, d: torch.sparse.addmm(d, s, d),
        lambda s, d: torch.sparse.sum(s),
        lambda s, d: torch.sparse.softmax(s, 1),
        lambda s, d: s.t(),
        lambda s, d: s.sin(),
        lambda s, d: d.sparse_mask(s),
        lambda s, d: s.index_select(0, torch.tensor([1, 3], device=s.device)),
        lambda s, d: torch.cat([s, s]),
        lambda s, d: s.transpose(0, 1).coalesce(),
        lambda s, d: s.clone().zero_(),
        lambda s, d: d.clone().add_(s),
        lambda s, d: s.norm(),
    ],
    ids=[
        "add", "scale", "multiply", "mm", "mv", "addmm", "sum", "softmax", "transpose", "sine",
        "mask", "select", "cat", "coalesce", "zero", "into dense", "norm",
    ],
)  # fmt: skip
def test_coo_operators(operation):
    want = operation(DENSE.to_sparse(), DENSE)
    got = operation(DENSE.to("openreg").to_sparse(), DENSE.to("openreg"))
    assert got.device == torch.device("openreg:0")
    assert got.layout == want.layout
    assert_close(got.to_dense().cpu(), want.to_dense())


@pytest.mark.parametrize(
    "operation",
    [
        lambda s, d: s + s, lambda s, d: s * 2, lambda s, d: s @ d, lambda s, d: s @ d[0],
        lambda s, d: torch.sparse.sampled_addmm(s, d, d), lambda s, d: s.sum(),
        lambda s, d: s.t(), lambda s, d: s.abs(), lambda s, d: s.to(torch.float64),
    ],
    ids=["add", "scale", "mm", "mv", "sampled addmm", "sum", "transpose", "abs", "cast"],
)  # fmt: skip
def test_csr_operators(operation):
    want = operation(DENSE.to_sparse_csr(), DENSE)
    got = operation(DENSE.to("openreg").to_sparse_csr(), DENSE.to("openreg"))
    assert got.device == torch.device("openreg:0")
    assert (got.layout, got.dtype) == (want.layout, want.dtype)
    assert_close(got.to_dense().cpu(), want.to_dense())


def test_gradients_through_a_sparse_product():
    x = DENSE.to("openreg").requires_grad_()
    weight = torch.ones(4, 2, device="openreg", requires_grad=True)
    torch.sparse.mm(x.to_sparse(), weight).sum().backward()
    assert weight.grad.tolist() == [[3, 3], [6, 6], [5, 5], [1, 1]]  # the sums of the columns
    assert x.grad.device == torch.device("openreg:0")
    assert x.grad.to_dense().cpu()[DENSE != 0].tolist() == [2] * 5


def test_embedding_with_sparse_gradients():
    embedding = torch.nn.Embedding(4, 2, sparse=True).to("openreg")
    with torch.no_grad():
        embedding.weight.fill_(1)
    optimizer = torch.optim.SparseAdam(embedding.parameters(), lr=0.5)
    embedding(torch.tensor([1, 1, 2], device="openreg")).sum().backward()
    assert embedding.weight.grad.layout == torch.sparse_coo
    assert embedding.weight.grad.coalesce().values().tolist() == [[2, 2], [1, 1]]
    optimizer.step()
    # Adam's first step is the learning rate.
    want = torch.tensor([[1, 1], [0.5, 0.5], [0.5, 0.5], [1, 1]])
    assert_close(embedding.weight.detach().cpu(), want)


@pytest.mark.parametrize("convert", LAYOUTS.values(), ids=LAYOUTS)
def test_saving_and_loading(convert):
    file = io.BytesIO()
    torch.save(convert(DENSE.to("openreg:1")), file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    assert_sparse_equal(loaded, convert(DENSE), "openreg:1")


def test_sparse_tensors_on_different_devices_are_refused():
    with pytest.raises(RuntimeError, match="device"):
        DENSE.to("openreg").to_sparse() + DENSE.to("openreg:1").to_sparse()
    with pytest.raises(RuntimeError, match="device"):
        DENSE.to("openreg").to_sparse() @ DENSE


# ---- Nested ----


def test_jagged_tensors():
    parts = [torch.arange(4.0).view(2, 2), torch.ones(3, 2)]
    nested = torch.nested.nested_tensor(parts, device="openreg", layout=torch.jagged)
    assert nested.device == torch.device("openreg:0")
    doubled = nested * 2
    assert [t.tolist() for t in doubled.unbind()] == [(p * 2).tolist() for p in parts]
    assert torch.equal(doubled.cpu().values(), torch.cat(parts) * 2)
    padded = nested.to_padded_tensor(0.0)
    assert padded.device == torch.device("openreg:0")
    assert padded[0].tolist() == [[0, 1], [2, 3], [0, 0]]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
def test_nested_tensors():
    parts = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, -4.0, 5.0])]
    for nested in (
        torch.nested.nested_tensor(parts, device="openreg"),
        torch.nested.nested_tensor(parts).to("openreg"),
        torch.nested.as_nested_tensor([p.to("openreg") for p in parts]),
    ):
        assert nested.is_nested
        assert nested.device == torch.device("openreg:0")
        assert [t.tolist() for t in nested.unbind()] == [[1, 2], [3, -4, 5]]
        positive = (nested + 1).relu()
        assert positive.device == torch.device("openreg:0")
        assert positive.to_padded_tensor(9.0).tolist() == [[2, 3, 9], [4, 0, 6]]
        assert [t.tolist() for t in positive.cpu().unbind()] == [[2, 3], [4, 0, 6]]
        assert "device='openreg:0'" in repr(nested)


# ---- Quantized ----

QUANTIZED = pytest.mark.filterwarnings("ignore:.*quantized tensor creation functions")  # going out


@QUANTIZED
def test_quantized_tensors():
    x = torch.tensor([0.12, 0.26, 9.0])
    here = torch.quantize_per_tensor(x.to("openreg"), 0.1, 3, torch.quint8)
    moved = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8).to("openreg")
    for quantized in (here, moved, here.clone(), moved.view(3, 1).flatten()):
        assert quantized.is_quantized
        assert quantized.device == torch.device("openreg:0")
        assert (quantized.q_scale(), quantized.q_zero_point()) == (0.1, 3)
        assert quantized.int_repr().tolist() == [4, 6, 93]
        assert quantized.dequantize().device == torch.device("openreg:0")
        assert quantized.dequantize().tolist() == pytest.approx([0.1, 0.3, 9.0])
        assert quantized.cpu().dequantize().tolist() == pytest.approx([0.1, 0.3, 9.0])
        assert "device='openreg:0'" in repr(quantized)


@QUANTIZED
def test_channels_quantized_each_for_itself():
    x = torch.tensor([[0.5, 1.0], [2.0, 4.0]], device="openreg")
    scales = torch.tensor([0.5, 2.0], device="openreg")
    zeros = torch.zeros(2, dtype=torch.int64, device="openreg")
    quantized = torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8)
    assert quantized.int_repr().tolist() == [[1, 2], [1, 2]]
    assert quantized.q_per_channel_scales().tolist() == [0.5, 2.0]
    assert quantized.q_per_channel_scales().device == torch.device("openreg:0")
    assert torch.equal(quantized.dequantize(), x)


def test_fake_quantization_works():
    x = torch.tensor([0.12, 0.26, 9.0], device="openreg")
    result = torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 10)
    assert result.device == torch.device("openreg:0")
    assert result.tolist() == pytest.approx([0.1, 0.3, 1.0])


# ---- What is missing ----


def test_a_layout_that_is_missing_is_named():
    with pytest.raises(NotImplementedError, match=r"aten::.*openreg"):
        torch.ones(3, 3, device="openreg").to_mkldnn()
    assert torch.ones(1, device="openreg").item() == 1  # the process goes on
