"""What the host registers with PyTorch's C++ code for a plugin without any of its own."""

import pytest

# A device whose data belong to the storage: a storage of bytes in memory that a bytearray owns.
WITH_STORAGES = """
from minimal_plugin import devhost_device, devhost_probe, devhost_runtime
import ctypes
from devhost import hookimpl

@hookimpl
def devhost_kernels(registry):
    import torch
    device = torch.device("privateuseone", 0)
    cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)

    def on_cpu(operator):
        return lambda *args, **options: operator.redispatch(cpu, *args, **options)

    set_ = on_cpu(torch.ops.aten.set_.source_Storage_storage_offset)

    def alias(tensor):
        if tensor.device.type == "cpu":
            return tensor
        storage = torch.frombuffer(tensor.untyped_storage().data, dtype=torch.uint8)
        flat = torch.empty(0, dtype=tensor.dtype, device="cpu")
        flat.set_(storage.untyped_storage(), 0, tensor.shape, tensor.stride())
        return flat.conj() if tensor.is_conj() else flat

    def empty_strided(size, stride, *, dtype=None, **_):
        tensor = torch._C._acc.create_empty_tensor((0,), dtype or torch.float32)
        shape = torch.empty_strided(size, stride, dtype=tensor.dtype, device="meta")
        nbytes = shape.untyped_storage().nbytes()
        data = bytearray(max(nbytes, 1))
        address = ctypes.addressof(ctypes.c_char.from_buffer(data))
        storage = torch._C._construct_storage_from_data_pointer(address, device, nbytes)
        storage.data = data
        return set_(tensor, storage, 0, size, stride)

    def copy_from(source, target, non_blocking=False):
        alias(target).copy_(alias(source))
        return target

    registry.register_python_device()
    registry.allow_moving_parameters()
    registry.impl("aten::empty_strided", empty_strided)
    registry.impl("aten::empty.memory_format", lambda size, **options: empty_strided(
        size, torch.empty(size, device="meta").stride(), dtype=options.get("dtype")))
    registry.impl("aten::set_.source_Storage_storage_offset", set_)
    registry.impl("aten::set_.source_Storage", lambda tensor, storage: set_(
        tensor, storage, 0, [storage.nbytes() // tensor.itemsize], [1]))
    registry.impl("aten::_copy_from", copy_from)
"""


@pytest.fixture(scope="module")
def storing(tmp_path_factory, base, module_site):
    """An interpreter with the device above, in place of the minimal one."""
    site = type(module_site)(tmp_path_factory.mktemp("storing"), base)
    site.add_package("minimal")
    for entry_points in site.root.glob("*.dist-info/entry_points.txt"):
        entry_points.write_text("[devhost.devices]\nminimal = storing_plugin\n")
    (site.root / "storing_plugin.py").write_text(WITH_STORAGES)
    with site.interpreter() as interpreter:
        interpreter("import copy, io, torch; x = torch.arange(4.0).to('minimal')")
        yield interpreter


def test_storages_can_be_made(storing, raises):
    assert storing("torch.UntypedStorage(12, device='minimal').nbytes()") == 12
    assert storing("str(torch.UntypedStorage(12, device='minimal').device)") == "minimal:0"
    assert storing("torch.UntypedStorage([1, 2], device='minimal').cpu().tolist()") == [1, 2]
    assert storing("torch.UntypedStorage(device='minimal').nbytes()") == 0
    with raises("RuntimeError: torch.UntypedStorage.*of type str instead of int"):
        storing("torch.UntypedStorage('four', device='minimal')")


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_storages_of_other_devices_are_left_alone(storing, device):
    made = storing(f"s = torch.UntypedStorage(12, device='{device}'); (s.nbytes(), str(s.device))")
    assert made == [12, device]


def test_a_deep_copy_is_independent(storing):
    storing("y = copy.deepcopy(x); done = y.copy_(torch.zeros(4))")
    assert storing("(x.cpu().tolist(), y.cpu().tolist())") == [[0, 1, 2, 3], [0, 0, 0, 0]]


def test_tensors_are_loaded_to_the_device(storing):
    storing("file = io.BytesIO(); torch.save(x, file); file.seek(0); y = torch.load(file)")
    assert storing("(str(y.device), y.cpu().tolist())") == ["minimal:0", [0, 1, 2, 3]]
    assert storing("file.seek(0); str(torch.load(file, map_location='cpu').device)") == "cpu"


def test_parameters_stay_themselves(storing):
    storing("layer = torch.nn.Linear(2, 1); weight = layer.weight; before = weight.tolist()")
    storing("moved = layer.to('minimal')")
    assert storing("layer.weight is weight and str(weight.device)") == "minimal:0"
    assert storing("weight.cpu().tolist() == before")


def test_a_device_without_storages_says_so(minimal, raises):
    with raises("NotImplementedError: device minimal has no storages"):
        minimal("torch.UntypedStorage(12, device='minimal')")


def test_a_copy_to_the_cpu_needs_no_pinned_memory(storing):
    assert storing("x.to('cpu', non_blocking=True).tolist()") == [0, 1, 2, 3]
    storing("y = x.clone().requires_grad_(); y.to('cpu', non_blocking=True).sum().backward()")
    assert storing("y.grad.cpu().tolist()") == [1, 1, 1, 1]


def test_a_lazy_conjugate_is_copied_by_the_plugins_kernel(storing):
    storing("z = torch.tensor([1 + 2j, 3 - 4j]).to('minimal')")
    assert storing("z.conj().is_conj()") is True
    assert storing("torch.view_as_real(z.conj().cpu()).tolist()") == [[1, -2], [3, 4]]
    resolved = storing("torch.view_as_real(z.conj().resolve_conj().cpu()).tolist()")
    assert resolved == [[1, -2], [3, 4]]
    assert storing("torch.view_as_real(z.cpu()).tolist()") == [[1, 2], [3, -4]]
