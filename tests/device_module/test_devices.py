"""Devices: the errors are those of torch.cuda."""

import pytest


@pytest.fixture(autouse=True)
def _first_device(minimal):
    minimal("m.set_device(0)")


def test_bound_as_they_are(minimal):
    assert minimal("m.current_device == m.runtime.current_device")
    assert minimal("m.device_count == m.runtime.device_count")
    assert minimal("m._is_in_bad_fork == m.runtime.is_in_bad_fork")


def test_extra_members_of_the_runtime(minimal):
    assert minimal("m.answer") == 42
    assert minimal("'answer' in m.__all__ and '_lazy_init' not in m.__all__")


@pytest.mark.parametrize("device", ["1", "'minimal:1'", "torch.device('minimal', 1)", "True"])
def test_set_device(minimal, device):
    minimal(f"m.set_device({device})")
    assert minimal("m.current_device()") == 1


def test_negative_index_changes_nothing(minimal):
    minimal("m.set_device(1); m.set_device(-1)")
    assert minimal("m.current_device()") == 1
    minimal("with m.device(-1): inside = m.current_device()")
    assert minimal("inside") == 1
    assert minimal("m._exchange_device(-1)") == -1


@pytest.mark.parametrize(
    ("device", "error"),
    [
        ("99", "AcceleratorError: minimal: invalid device ordinal 99, there are 2 devices"),
        ("2", "AcceleratorError: minimal: invalid device ordinal 2"),
        ("'minimal:2'", "AcceleratorError: minimal: invalid device ordinal 2"),
        ("'cpu'", "ValueError: Expected a minimal device, but got: cpu"),
        ("torch.device('meta')", "ValueError: Expected a minimal device, but got: meta"),
        ("'minimal'", "ValueError: Expected a torch.device with a specified index or an integer"),
        ("None", "ValueError: Expected a torch.device with a specified index or an integer"),
        ("1.0", "ValueError: Expected a torch.device with a specified index or an integer"),
        ("torch.ones(1)", "ValueError: Expected a torch.device with a specified index"),
        ("'nonesuch'", "RuntimeError: Expected one of cpu"),
    ],
)
def test_set_device_refuses(minimal, raises, device, error):
    with raises(error):
        minimal(f"m.set_device({device})")
    assert minimal("m.current_device()") == 0


def test_accelerator_error_is_a_runtime_error(minimal):
    assert minimal("issubclass(torch.AcceleratorError, RuntimeError)")


@pytest.mark.parametrize("function", ["get_device_properties", "get_device_name"])
def test_properties_of_a_device_that_does_not_exist(minimal, raises, function):
    with raises("AssertionError: Invalid device id: minimal: invalid device ordinal 2"):
        minimal(f"m.{function}(2)")
    with raises("AssertionError: Invalid device id"):
        minimal(f"m.{function}(-1)")
    with raises("ValueError: Expected a minimal device, but got: cpu"):
        minimal(f"m.{function}('cpu')")


def test_properties(minimal):
    assert minimal("m.get_device_properties().total_memory") == 1 << 20
    assert minimal("[m.get_device_name(d) for d in (None, 1, 'minimal', 'minimal:1')]") == [
        "Minimal 0",
        "Minimal 1",
        "Minimal 0",
        "Minimal 1",
    ]


def test_synchronize(minimal, raises):
    minimal("m.runtime.synchronized.clear(); m.synchronize(); m.synchronize('minimal:1')")
    assert minimal("m.runtime.synchronized") == [0, 1]
    with raises("AcceleratorError"):
        minimal("m.synchronize(2)")


def test_device_context(minimal, raises):
    minimal("with m.device('minimal:1') as entered: inside = m.current_device()")
    assert minimal("[inside, m.current_device(), entered]") == [1, 0, None]
    with raises("ZeroDivisionError"):
        minimal("with m.device(1): 1 / 0")
    assert minimal("m.current_device()") == 0
    with raises("AcceleratorError"):
        minimal("with m.device(5): pass")
    minimal("with m.device(None): inside = m.current_device()")
    assert minimal("inside") == 0


def test_device_of(minimal):
    minimal("m.set_device(1); x = torch.ones(1, device='minimal')")
    minimal("with m.device_of(x): of_tensor = m.current_device()")
    minimal("with m.device_of(torch.ones(1)): of_cpu = m.current_device()")
    assert minimal("[of_tensor, of_cpu, m.current_device()]") == [0, 1, 1]


def test_device_classes_are_found_where_they_are_used(minimal):
    assert minimal("repr(m.device)") == "<class 'torch.minimal.device'>"
    assert minimal("import pickle; pickle.loads(pickle.dumps(m.device)) is m.device")
    assert minimal("issubclass(m.device_of, m.device)")


def test_index_for_torch_load(minimal, raises):
    assert minimal("m._utils._get_device_index('minimal:1', True)") == 1
    assert minimal("m._utils._get_device_index('minimal', True)") == 0
    assert minimal("m._utils._get_device_index('cpu', allow_cpu=True)") == -1
    with raises("ValueError"):
        minimal("m._utils._get_device_index('minimal')")


def test_capability_comes_from_the_guard(minimal, raises):
    # PyTorch's Python device guard has none to offer.
    with raises("RuntimeError: Backend doesn't support getting device capabilities"):
        minimal("m.get_device_capability()")


def test_memory_without_a_device_allocator_names_the_plugin(minimal, raises):
    for call in ("memory_allocated()", "memory_stats(1)", "mem_get_info()", "empty_cache()"):
        with raises(r"NotImplementedError: device plugin 'minimal' \(minimal 1.0"):
            minimal(f"m.{call}")
    with raises("AcceleratorError"):
        minimal("m.memory_allocated(7)")


def test_streams(minimal, raises):
    assert minimal("[m.Stream is torch.Stream, m.Event is torch.Event]") == [True, True]
    assert minimal("str(m.default_stream(1).device)") == "minimal:1"
    assert minimal("m.default_stream().stream_id") == 0
    assert minimal("m.current_stream() == m.default_stream()")
    minimal("with m.stream(None) as nothing: pass\nm.set_stream(None)")
    assert minimal("nothing") is None
    with raises("ValueError: Expected a minimal stream, but got one of cpu"):
        minimal("m.set_stream(torch.Stream(stream_id=0, device_index=0, device_type=0))")
    with raises("AcceleratorError"):
        minimal("m.current_stream(9)")


def test_autocast(minimal):
    assert minimal("m.get_amp_supported_dtype()") == ["torch.bfloat16", "torch.float16"]
    assert minimal("m.is_bf16_supported()") is True
    assert minimal("str(torch.get_autocast_dtype('minimal'))") == "torch.bfloat16"
    minimal(
        """
        x = torch.ones(2, 2, device="minimal")
        with torch.autocast("minimal"):
            inside = [torch.is_autocast_enabled("minimal"), (x + x).cpu().sum().item()]
        """
    )
    # Operators without a cast run unchanged.
    assert minimal("inside") == [True, 8.0]


def test_peer_access(minimal, raises):
    with raises("NotImplementedError: device plugin"):
        minimal("m.can_device_access_peer(0, 1)")
    minimal("m.runtime.can_access_peer = lambda index, peer: index < peer")
    try:
        assert minimal("[m.can_device_access_peer(0, 1), m.can_device_access_peer(1, 0)]") == [
            True,
            False,
        ]
        with raises("AssertionError: Invalid device id: minimal: invalid device ordinal 2"):
            minimal("m.can_device_access_peer(0, 2)")
    finally:
        minimal("del m.runtime.can_access_peer")
