"""Device names; what else is checked is in test_faults."""

import pytest

GOOD = ["openreg", "my_device", "_x", "npu", "v"]

BAD = {
    "": "torch.device() cannot parse it",
    "_": "torch.device() cannot parse it",
    "1dev": "torch.device() cannot parse it",
    "dev1": "torch.device() cannot parse it",
    "my-dev": "torch.device() cannot parse it",
    "a b": "torch.device() cannot parse it",
    "d\u00e9v": "torch.device() cannot parse it",
    "dev\n": "torch.device() cannot parse it",
    "FooDev": "torch.device() cannot parse it",
    "dev:0": "torch.device() cannot parse it",
    "cuda": "one of PyTorch's own device types",
    "cpu": "one of PyTorch's own device types",
    "meta": "one of PyTorch's own device types",
    "hip": "one of PyTorch's own device types",
    "privateuseone": "one of PyTorch's own device types",
    "cudacustom": "it begins with 'cuda'",
    "mpserver": "it begins with 'mps'",
    "metal": "it begins with 'meta'",
    "nn": "torch.nn exists already",
    "optim": "torch.optim exists already",
    "float": "torch.float exists already",
    "onnx": "torch.onnx exists already",  # a submodule that torch has not imported
    "has_cuda": "torch.has_cuda exists already",  # deprecated: looking it up warns
    "data": "torch.Tensor.data exists already",
    "sparse": "torch.Tensor.is_sparse exists already",
    "train": "torch.nn.modules.module.Module.train exists already",
    "filename": "torch.storage.UntypedStorage.filename exists already",
    "batch_sizes": "PackedSequence.batch_sizes exists already",
    "lambda": "'lambda' is a Python keyword",
    "none": "DEVHOST_DEVICE=none means no device",
}


@pytest.fixture(scope="module")
def run(module_site):
    with module_site.interpreter(TORCH_DEVICE_BACKEND_AUTOLOAD="0") as interpreter:
        interpreter("import sys, torch, devhost")
        yield interpreter


@pytest.mark.parametrize("name", BAD)
def test_bad_name(run, raises, name):
    with raises("InvalidDeviceNameError") as caught:
        run(f"devhost.validate_name({name!r})")
    assert BAD[name] in str(caught.value)
    assert f"{name!r} cannot be the name of a device" in str(caught.value)


@pytest.mark.parametrize("name", GOOD)
def test_good_name(run, name):
    assert run(f"devhost.validate_name({name!r})") is None


def test_is_a_value_error_that_lists_its_problems(run):
    assert run("issubclass(devhost.InvalidDeviceNameError, ValueError)")
    run("try: devhost.validate_name('data')\nexcept ValueError as e: error = e")
    assert run("error.name") == "data"
    assert run("error.problems") == [
        "torch.Tensor.data exists already",
        "torch.nn.utils.rnn.PackedSequence.data exists already",
    ]


def test_names_are_refused_for_other_types(run, raises):
    with raises("InvalidDeviceNameError: 3 cannot be the name"):
        run("devhost.validate_name(3)")


def test_checking_names_changes_nothing(run):
    # After every test above.
    assert run("torch._C._get_privateuse1_backend_name()") == "privateuseone"
    assert run("'torch.onnx' in sys.modules") is False
