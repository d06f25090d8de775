"""Getting tensors out of a process, or to another library, and back: files, pickles, DLPack."""

import copy
import io
import pickle
from multiprocessing.reduction import ForkingPickler

import numpy
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils.dlpack import DLDeviceType


def saved(value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    buffer.seek(0)
    return buffer


# ---- torch.save and torch.load ----


@pytest.mark.parametrize(
    ("location", "device"),
    [
        (None, "openreg:1"),
        ("cpu", "cpu"),
        (torch.device("cpu"), "cpu"),
        ("openreg", "openreg:0"),
        ("openreg:0", "openreg:0"),
        (torch.device("openreg", 1), "openreg:1"),
        ({"openreg:1": "cpu"}, "cpu"),
        ({"openreg:1": "openreg:0"}, "openreg:0"),
        ({"openreg:0": "cpu"}, "openreg:1"),
        (lambda storage, _: storage.cpu(), "cpu"),
        (lambda storage, _: storage, "cpu"),
        (lambda storage, _: None, "openreg:1"),
    ],
)
def test_map_location(location, device):
    x = torch.arange(4.0, device="openreg:1")
    whole, part = torch.load(saved([x, x[1:]]), map_location=location)
    assert whole.device == part.device == torch.device(device)
    assert whole.tolist() == [0, 1, 2, 3]
    whole[1] = 9
    assert part[0].item() == 9  # still one storage


def test_a_cpu_file_is_loaded_to_the_device():
    buffer = saved({"w": torch.ones(2)})
    assert torch.load(buffer, map_location="openreg:1")["w"].device == torch.device("openreg:1")
    buffer.seek(0)
    with torch.device("openreg"):
        assert torch.load(buffer)["w"].device == torch.device("cpu")


def test_a_device_that_is_not_there_is_refused(fresh, tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(2, device="openreg:1"), path)
    code = f"""
import torch
try:
    torch.load({str(path)!r})
except RuntimeError as error:
    print(error)
print(torch.load({str(path)!r}, map_location="openreg:0").device)
"""
    process = fresh(code, OPENREG_DEVICE_COUNT="1")
    assert process.stderr == ""
    message, device = process.stdout.strip().splitlines()
    assert "OPENREG device 1" in message
    assert "map_location" in message
    assert device == "openreg:0"


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("new_format", [True, False])
def test_every_kind_of_tensor(weights_only, new_format):
    base = torch.arange(6.0, device="openreg")
    state = {
        "parameter": torch.nn.Parameter(torch.ones(2, device="openreg")),
        "bfloat16": torch.tensor(1.5, device="openreg", dtype=torch.bfloat16),
        "complex": torch.tensor([1 + 2j], device="openreg"),
        "bool": torch.tensor([True, False], device="openreg"),
        "empty": torch.empty(0, 3, device="openreg"),
        "transposed": base.view(2, 3).t(),
        "view": base[2:],
        "elsewhere": torch.ones(2, device="openreg:1"),
        "host": torch.ones(2),
    }
    buffer = saved(state, _use_new_zipfile_serialization=new_format)
    loaded = torch.load(buffer, weights_only=weights_only)
    for name, value in state.items():
        assert loaded[name].device == value.device, name
        assert loaded[name].dtype == value.dtype, name
        assert loaded[name].stride() == value.stride(), name
        assert torch.equal(loaded[name].cpu(), value.detach().cpu()), name
    assert isinstance(loaded["parameter"], torch.nn.Parameter)
    loaded["transposed"].zero_()
    assert loaded["view"].cpu().eq(0).all()


def test_lazy_conjugates_and_negatives_are_saved():
    z = torch.tensor([1 + 2j, 3 - 4j], device="openreg")
    for lazy in (z.conj(), z.conj().imag):
        for loaded in (
            torch.load(saved(lazy)),
            copy.deepcopy(lazy),
            pickle.loads(pickle.dumps(lazy)),
        ):
            assert loaded.device == z.device
            assert loaded.tolist() == lazy.tolist()
    loaded = torch.load(saved(z.conj()))
    assert loaded.is_conj()
    assert torch.load(saved(z.conj().imag)).is_neg()
    assert loaded.tolist() == [1 - 2j, 3 + 4j]


def test_modules_and_optimizers():
    layer = torch.nn.Linear(3, 2).openreg()
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 3, device="openreg")).sum().backward()
    optimizer.step()
    other = torch.nn.Linear(3, 2).openreg()
    other.load_state_dict(torch.load(saved(layer.state_dict()), weights_only=True))
    assert torch.equal(other.weight.cpu(), layer.weight.cpu())
    state = torch.load(saved(optimizer.state_dict()), weights_only=True)
    assert state["state"][0]["exp_avg"].device.type == "openreg"


def test_mapped_files(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.arange(3.0, device="openreg"), path)
    assert torch.load(path, mmap=True, map_location="openreg").tolist() == [0, 1, 2]


def test_fake_tensors_are_loaded_without_the_device():
    buffer = saved({"w": torch.ones(3, device="openreg:1")})
    before = torch.openreg.memory_allocated(1)
    with FakeTensorMode():
        fake = torch.load(buffer)["w"]
    assert isinstance(fake, FakeTensor)
    assert fake.device == torch.device("openreg:1")
    assert fake.shape == (3,)
    assert torch.openreg.memory_allocated(1) == before


def test_saving_without_data():
    buffer = io.BytesIO()
    with torch.serialization.skip_data():
        torch.save(torch.ones(3, 2, device="openreg"), buffer)
    buffer.seek(0)
    assert torch.load(buffer).shape == (3, 2)


# ---- Copies and pickles ----


def test_copies_keep_device_and_sharing():
    x = torch.arange(4.0, device="openreg:1")
    assert copy.copy(x).data_ptr() == x.data_ptr()
    whole, part = copy.deepcopy([x, x[1:]])
    assert whole.device == x.device
    assert whole.data_ptr() != x.data_ptr()
    whole[1] = 9
    assert part[0].item() == 9
    assert x[1].item() == 1


def test_pickle():
    x = torch.arange(4.0, device="openreg:1")
    y = pickle.loads(pickle.dumps(x))
    assert y.device == x.device
    assert y.tolist() == x.tolist()


# ---- Storages ----


def test_a_storage_is_freed_and_regrown():
    x = torch.arange(4.0, device="openreg")
    storage = x.untyped_storage()
    size, before = storage.nbytes(), torch.openreg.memory_allocated()
    storage.resize_(0)
    assert storage.nbytes() == 0
    assert torch.openreg.memory_allocated() < before
    storage.resize_(size)
    x.copy_(torch.arange(4.0))
    assert x.tolist() == [0, 1, 2, 3]
    storage.resize_(2 * size)
    assert x.tolist() == [0, 1, 2, 3]
    assert torch.openreg.memory_allocated() <= before + 512


def test_set_shares_a_storage():
    x = torch.arange(4.0, device="openreg")
    y = torch.empty(0, device="openreg").set_(x.untyped_storage(), 1, (2,), (2,))
    assert y.tolist() == [1, 3]
    y.zero_()
    assert x.tolist() == [0, 0, 2, 0]


def test_storages_are_copied_in_every_direction():
    x = torch.arange(4.0, device="openreg")
    size = x.untyped_storage().nbytes()
    for target in ("openreg:0", "openreg:1", "cpu"):
        storage = torch.UntypedStorage(size, device=target).copy_(x.untyped_storage())
        assert storage.device == torch.device(target)
        assert storage.tolist() == x.untyped_storage().tolist()
    back = torch.UntypedStorage(size, device="openreg").copy_(x.cpu().untyped_storage())
    assert back.tolist() == x.untyped_storage().tolist()
    assert x.untyped_storage().clone().tolist() == back.tolist()


def test_storage_elements():
    storage = torch.UntypedStorage(4, device="openreg").fill_(7)
    storage[2] = 9
    assert len(storage) == 4
    assert storage.tolist() == [7, 7, 9, 7]
    assert storage.cpu().device.type == "cpu"
    assert storage.is_openreg
    assert not storage.is_pinned()


# ---- DLPack ----


def test_dlpack_says_where_a_tensor_is():
    device = torch.ones(2, device="openreg:1").__dlpack_device__()
    assert device == (DLDeviceType.kDLExtDev, 1)
    assert torch.ones(2).__dlpack_device__() == (DLDeviceType.kDLCPU, 0)


@pytest.mark.parametrize(
    "export",
    [lambda x: x, torch.utils.dlpack.to_dlpack, lambda x: x.__dlpack__(max_version=(1, 0))],
)
def test_dlpack_shares_the_memory(export):
    x = torch.arange(6.0, device="openreg:1").view(2, 3).t()
    y = torch.from_dlpack(export(x))
    assert y.device == x.device
    assert y.stride() == x.stride()
    assert y.data_ptr() == x.data_ptr()
    y[0, 0] = 7
    assert x[0, 0].item() == 7
    del x
    assert y[0].tolist() == [7, 3]
    (y + 1).cpu()


def test_dlpack_can_copy_and_move():
    x = torch.arange(3.0, device="openreg")
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert torch.from_dlpack(x, device="cpu").tolist() == [0, 1, 2]
    assert torch.from_dlpack(torch.ones(2), device="openreg").device.type == "openreg"
    assert torch.from_dlpack(numpy.ones(2), device="openreg").tolist() == [1, 1]


def test_memory_from_dlpack_is_not_counted_twice_and_not_freed_twice():
    before = torch.openreg.memory_allocated()
    x = torch.ones(1000, device="openreg")
    y = torch.from_dlpack(x)
    assert torch.openreg.memory_allocated() == before + 4096
    del x
    assert y.sum().item() == 1000
    del y
    assert torch.openreg.memory_allocated() == before


def test_numpy_gets_no_device_memory():
    x = torch.ones(2, device="openreg")
    with pytest.raises((RuntimeError, BufferError)):
        numpy.from_dlpack(x)
    with pytest.raises(TypeError, match="openreg"):
        x.numpy()


# ---- Other processes ----


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x.untyped_storage(), torch.nn.Parameter])
def test_sending_to_another_process_is_refused_with_the_way_to_do_it(part):
    with pytest.raises(RuntimeError, match=r"openreg:1 cannot be sent .* send tensor\.cpu\(\)"):
        ForkingPickler.dumps(part(torch.ones(3, device="openreg:1")))
    y = pickle.loads(bytes(ForkingPickler.dumps(torch.arange(3.0))))
    assert y.tolist() == [0, 1, 2]
    assert y.is_shared()
