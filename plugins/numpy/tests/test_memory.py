"""Storages over arrays: views alias, memory is freed, and tensors can be copied and saved."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "view",
    [
        *(
            "x.view(6)",
            "x.T",
            "x[1]",
            "x[:, 1:]",
            "x.expand(4, 2, 3)",
            "x.select(1, 2)",
            "x.detach()",
        ),
        *("x.unsqueeze(0)", "x.as_strided((2,), (4,), 1)", "x.diagonal()", "x.unfold(1, 2, 1)"),
        *("x.reshape(3, 2)", "x.flatten()", "x.permute(1, 0)", "x.squeeze()", "x.alias()"),
        *("x.view(torch.int32)", "x.split(2, 1)[1]", "x.unbind()[1]", "x.movedim(0, 1)", "x.data"),
        *("x.narrow(1, 1, 2)", "x.chunk(3, 1)[2]", "torch.view_as_complex(x.view(3, 2)).imag"),
    ],
)
def test_writes_through_a_view_change_the_base(device, view):
    view = view.replace("x.alias()", "torch.ops.aten.alias(x)")
    same = device(
        f"""
        found = []
        for where in ("cpu", "ndarray"):
            x = torch.arange(6.0).reshape(2, 3).to(where)
            v = {view}
            version = x._version
            written = v if v._is_view() or v.dim() else v
            (v[0] if v.shape[:1] == (4,) and v.stride(0) == 0 else v).fill_(7)
            found.append((x.tolist(), v.tolist(), v.stride(), v.storage_offset(),
                          x._version - version))
            shared = v.untyped_storage()._cdata == x.untyped_storage()._cdata
        [found[0] == found[1], shared]
        """
    )
    assert same == [True, True]


def test_writes_to_the_base_change_a_view(device):
    assert device(
        "x = torch.zeros(2, 3, device='ndarray'); v = x.T[1:]; x.add_(2); v.tolist()"
    ) == [
        [2, 2],
        [2, 2],
    ]


def test_tensors_of_one_storage_share_one_array(device):
    device("x = torch.zeros(4, device='ndarray'); views = [x[1:], x.view(2, 2), x.detach()]")
    assert device("all(v.untyped_storage().buffer is x.untyped_storage().buffer for v in views)")
    assert device("type(x.untyped_storage().buffer).__name__") == "ndarray"
    assert device("x.untyped_storage().buffer.nbytes") == 16


def test_the_array_is_freed_with_the_last_tensor(device):
    device(
        """
        x = torch.zeros(1000, device="ndarray")
        alive = weakref.ref(x.untyped_storage().buffer)
        view = x[10:].view(99, 10)
        gc.collect()
        before = alive() is not None
        del x
        gc.collect()
        between = alive() is not None
        del view
        gc.collect()
        """
    )
    assert device("(before, between, alive() is None)") == [True, True, True]


def test_a_training_step_leaves_no_memory_behind(device):
    grown = device(
        """
        import tracemalloc
        model = nn.Linear(64, 64).to("ndarray")
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        def step():
            optimizer.zero_grad()
            model(torch.ones(64, 64, device="ndarray")).square().mean().backward()
            optimizer.step()
        tracemalloc.start()
        for _ in range(20):
            step()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            step()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        [grown, peak]
        """
    )
    assert grown[1] > 64 * 64 * 4  # NumPy reports its arrays, or the test would see nothing
    assert grown[0] < 64 * 64 * 4


def test_resizing_keeps_the_values(device):
    assert device(
        """
        x = torch.arange(4.0).to("ndarray")
        view = x[:]
        smaller = x.resize_(2).tolist()
        x.resize_(2, 3).view(6)[4:] = 9
        [smaller, x.tolist(), view.tolist()]
        """
    ) == [[0, 1], [[0, 1, 2], [3, 9, 9]], [0, 1, 2, 3]]
    assert device("torch.empty(0, device='ndarray').resize_as_(x).shape") == [2, 3]


@pytest.mark.parametrize("layout", ["contiguous_format", "channels_last"])
def test_empty_has_the_strides_of_the_cpu(device, layout):
    assert device(
        f"""
        options = dict(memory_format=torch.{layout}, dtype=torch.float16)
        made = [torch.empty(2, 3, 4, 5, device=d, **options) for d in ("cpu", "ndarray")]
        made[0].stride() == made[1].stride()
        """
    )


@pytest.mark.parametrize(
    "expression",
    [
        *("torch.zeros(2, 3)", "torch.ones(2, dtype=torch.int8)", "torch.full((2,), 7)"),
        *("torch.arange(5)", "torch.arange(1, 2, 0.25)", "torch.arange(5.5)", "torch.eye(3)"),
        *("torch.linspace(0, 1, 5)", "torch.logspace(0, 1, 3)", "torch.tensor([[1, 2], [3, 4]])"),
        *("torch.tensor(3.5)", "torch.tensor([])", "torch.zeros(0, 3)", "torch.tril_indices(3, 3)"),
        *("torch.as_tensor([True, False])", "torch.scalar_tensor(2)", "torch.arange(5, 0, -2)"),
        "torch.full((2, 2), 1j)",
        "torch.zeros(2, 2, dtype=torch.bfloat16)",
    ],
)
def test_factories_make_what_the_cpu_makes(device, expression):
    on_device = f"{expression[:-1]}, device=device)"
    assert device(f"equal({on_device!r})") is True


@pytest.mark.parametrize("source", ["bool", "uint8", "int64", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize(
    "target", ["bool", "int32", "bfloat16", "float16", "float64", "complex64", "float8_e4m3fn"]
)
def test_conversions_equal_the_cpu(device, source, target):
    back = "" if target == "complex64" else ".to(torch.float64)"
    assert device(f"equal('a.to(torch.{target}){back}', {source!r})") is True
    assert device(f"equal('b.T[1:].to(torch.{target}){back}', {source!r})") is True


def test_bfloat16_is_rounded_as_on_the_cpu(device):
    assert (
        device(
            """
            # Every 65537th float32: all signs and exponents, with ties among the mantissas.
            bits = torch.arange(-(2**31), 2**31 - 1, 65537, dtype=torch.int64).to(torch.int32)
            bits = torch.cat((bits, torch.arange(0x3F800000, 0x3F840000, 0x4000).to(torch.int32)))
            singles = bits.view(torch.float32)
            # The product is float32 inside the kernel and rounded when it is stored.
            on_cpu = (singles * 1.0).bfloat16()
            rounded = torch.empty(len(bits), dtype=torch.bfloat16, device="ndarray")
            torch.mul(singles.to("ndarray"), 1.0, out=rounded)
            torch.testing.assert_close(rounded.cpu(), on_cpu, equal_nan=True, rtol=0, atol=0)
            """
        )
        is None
    )


def test_lazy_conjugates_and_negatives(device):
    for expression in ("a.conj()", "a.conj() * a", "a.conj().imag", "a.mH @ a", "a.imag.neg()"):
        assert device(f"equal({expression!r}, 'complex64')") is True
    assert device("equal('(a.conj().imag.copy_(b.real), a)', 'complex64')") is True


def test_copies_go_both_ways(device):
    assert device(
        """
        x = torch.arange(6.0).reshape(2, 3)
        y = x.T.to("ndarray")
        z = torch.empty(3, 2)
        z.copy_(y, non_blocking=True)
        [y.stride(), z.tolist() == x.T.tolist(), y.to("cpu", non_blocking=True).is_pinned(),
         y.to("ndarray") is y, y.to("ndarray:0") is y, y.ndarray() is y, y.to("meta").device.type]
        """
    ) == [[1, 3], True, False, True, True, True, "meta"]


def test_deep_copies_are_independent_and_keep_aliases(device):
    assert device(
        """
        x = torch.arange(4.0).to("ndarray")
        copied, view = copy.deepcopy((x, x[1:]))
        copied.zero_()
        leaf = copy.deepcopy(x.clone().requires_grad_())
        [x.tolist(), view.tolist(), leaf.requires_grad, str(leaf.device)]
        """
    ) == [[0, 1, 2, 3], [0, 0, 0], True, "ndarray:0"]


@pytest.mark.parametrize("weights_only", [True, False])
def test_save_and_load(device, weights_only):
    device(
        f"""
        saved = {{"x": torch.arange(4.0).ndarray(), "half": numbers(torch.bfloat16, 3).ndarray()}}
        saved["view"] = saved["x"][1:]
        def load(**options):
            file = io.BytesIO()
            torch.save(saved, file)
            file.seek(0)
            return torch.load(file, weights_only={weights_only}, **options)
        """
    )
    assert device("loaded = load(); loaded['x'].add_(1); loaded['view'].tolist()") == [2, 3, 4]
    assert device("[str(t.device) for t in loaded.values()]") == ["ndarray:0"] * 3
    assert device("torch.equal(loaded['half'], saved['half'])")
    assert (
        device("loaded = load(map_location='cpu'); [str(t.device) for t in loaded.values()]")
        == ["cpu"] * 3
    )
    assert device("loaded['view'].tolist()") == [1, 2, 3]
    device("file = io.BytesIO(); torch.save(torch.ones(2), file); file.seek(0)")
    assert device("str(torch.load(file, map_location='ndarray').device)") == "ndarray:0"


def test_pickle(device):
    device("import pickle; x = torch.arange(3).to('ndarray'); y = pickle.loads(pickle.dumps(x))")
    assert device("(str(y.device), y.tolist())") == ["ndarray:0", [0, 1, 2]]


def test_state_dict_and_module_to(device):
    assert device(
        """
        model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        weight = model[0].weight
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        expected = {n: t.tolist() for n, t in model.state_dict().items()}
        model.to("ndarray")
        other = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        other.load_state_dict(model.state_dict())
        onto = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).to("ndarray")
        onto.load_state_dict(other.state_dict())
        [model[0].weight is weight, {str(t.device) for t in model.state_dict().values()},
         {n: t.tolist() for n, t in onto.state_dict().items()} == expected,
         {str(t.device) for t in model.cpu().state_dict().values()}]
        """
    ) == [True, "{'ndarray:0'}", True, "{'cpu'}"]


def test_storages(device):
    assert device("torch.UntypedStorage(5, device='ndarray').nbytes()") == 5
    assert device("torch.ones(2).untyped_storage().ndarray().cpu().tolist()") == [0, 0, 128, 63] * 2
    assert device(
        "s = torch.ones(2, device='ndarray').untyped_storage(); s.clone()._cdata != s._cdata"
    )
    assert device("torch.tensor([], device='ndarray').set_(s, 1, (1,)).tolist()") == [1]
    assert device("torch.ones(2, device='ndarray').set_().shape") == [0]
    assert (
        device("(lambda x: x.data_ptr() - x[1:].data_ptr())(torch.ones(2, device='ndarray'))") == -4
    )


def test_dlpack_shares_the_memory(device):
    assert device(
        "x = torch.zeros(3, device='ndarray'); y = torch.from_dlpack(x); y.add_(1); x.tolist()"
    ) == [1, 1, 1]
    assert device("del x; gc.collect(); (y * 2).tolist()") == [2, 2, 2]


def test_printing(device):
    assert (
        device("repr(torch.arange(3.0).to('ndarray'))")
        == "tensor([0., 1., 2.], device='ndarray:0')"
    )
    assert device(
        "repr(torch.ones(1, dtype=torch.bfloat16, device='ndarray', requires_grad=True))"
    ) == ("tensor([1.], device='ndarray:0', dtype=torch.bfloat16, requires_grad=True)")
    assert device("str(torch.zeros(1000, 2, device='ndarray')).count('...')") == 1
    assert device("f'{torch.tensor(2.5, device=\"ndarray\"):.1f}'") == "2.5"
    assert (
        device("torch.tensor(3, device='ndarray').item() + int(torch.ones((), device='ndarray'))")
        == 4
    )


def test_default_device(device):
    assert (
        device(
            """
        with torch.device("ndarray"):
            made = [torch.zeros(1), torch.tensor([1]), torch.arange(2), torch.rand(1), torch.eye(2),
                    torch.linspace(0, 1, 3), torch.full((1,), 2), nn.Linear(1, 1).weight,
                    F.dropout(torch.ones(4)), F.gelu(torch.ones(2)), nn.Conv1d(1, 1, 1).weight,
                    torch.randperm(4), torch.zeros(3).bernoulli_(), copy.deepcopy(torch.ones(2))]
        {str(t.device) for t in made}
        """
        )
        == "{'ndarray:0'}"
    )
