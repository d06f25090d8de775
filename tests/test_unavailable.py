"""A plugin whose hardware is not there: torch works, and every use of the device says why not."""

import pytest

# What a program may do first with the device. All of it is about the device "minimal".
FIRST_USES = [
    "torch.ones(1, device='minimal')",
    "torch.tensor([1], device='minimal:1')",
    "torch.rand(2, device=torch.device('minimal', 0))",
    "torch.empty_strided((2,), (1,), device='minimal')",
    "torch.UntypedStorage(4, device='minimal')",
    "cpu.to('minimal')",
    "cpu.to(device='minimal', non_blocking=True)",
    "cpu.minimal()",
    "cpu.untyped_storage().minimal()",
    "cpu.new_zeros(2, device='minimal')",
    "torch.empty_like(cpu, device='minimal')",
    "torch.empty(1, device='meta').to('minimal')",
    "torch.eye(2).to_sparse().to('minimal')",
    "torch.nn.utils.rnn.pack_sequence([cpu]).minimal()",
    "torch.nn.Linear(1, 1).to('minimal')",
    "torch.nn.Linear(1, 1).minimal()",
    "torch.nn.Linear(1, 1, device='minimal')",
    "torch.nn.Linear(1, 1, device='meta').to_empty(device='minimal')",
    "within(torch.device('minimal'), lambda: torch.ones(1))",
    "within(torch.autocast('minimal'))",
    "within(torch.autocast('minimal', dtype=torch.bfloat16))",
    "within(torch.accelerator.device_index(0))",
    "torch.accelerator.current_device_index()",
    "torch.accelerator.set_device_index(0)",
    "torch.accelerator.synchronize()",
    "torch.accelerator.current_stream()",
    "torch.accelerator.get_memory_info()",
    "torch.accelerator.get_device_capability()",
    "m.init()",
    "m.current_device()",
    "m.set_device(0)",
    "within(m.device(0))",
    "m.synchronize()",
    "m.get_device_name()",
    "m.get_device_properties(0)",
    "m.get_device_capability()",
    "m.can_device_access_peer(0, 1)",
    "m.Stream()",
    "m.Event(enable_timing=True)",
    "m.current_stream()",
    "m.default_stream()",
    "m.initial_seed()",
    "m.get_rng_state()",
    "m.get_rng_state_all()",
    "m.set_rng_state(torch.get_rng_state())",
    "m.get_amp_supported_dtype()",
    "m.memory_allocated()",
    "m.memory_stats()",
    "m.mem_get_info()",
    "m.reset_peak_memory_stats()",
    "m.set_per_process_memory_fraction(0.5)",
]
# What device-agnostic programs do on any machine, and what comes of it.
HARMLESS = {
    "str(torch.device('minimal:1'))": "minimal:1",
    "[m.is_available(), m.device_count(), m.is_initialized()]": [False, 0, False],
    "m.is_bf16_supported()": False,
    "torch.get_device_module('minimal') is m": True,
    "torch.get_device_module() is torch.cpu": True,  # that of what can be used
    "torch.accelerator.is_available()": False,
    "torch.accelerator.device_count()": 0,
    "torch.accelerator.current_accelerator().type": "minimal",
    "torch.accelerator.current_accelerator(check_available=True)": None,
    "torch.accelerator.empty_cache()": None,
    "torch.accelerator.memory_allocated()": 0,
    "dict(torch.accelerator.memory_stats())": {},
    "torch.manual_seed(3).initial_seed()": 3,
    "m.manual_seed_all(1)": None,
    "m.manual_seed(1)": None,
    "m.seed_all()": None,
    "m.empty_cache()": None,
    "isinstance(torch.Stream(device='cpu'), m.Stream)": False,
    "within(torch.random.fork_rng(device_type='minimal'))": None,
    "torch.rand(2).is_pinned()": False,
    "next(iter(torch.utils.data.DataLoader([1, 2]))).item()": 1,
    "torch.cos(torch.zeros(2, requires_grad=True)).sum().backward()": None,
    "torch.compile(torch.cos, backend='eager')(torch.zeros(1)).item()": 1.0,
}


@pytest.fixture(scope="module")
def unavailable(module_site):
    """An interpreter with torch imported and the minimal device hidden."""
    module_site.add_package("minimal")
    with module_site.interpreter(MINIMAL_HIDE="1") as run:
        run(
            """
            import io, os, sys, torch, devhost
            m = torch.minimal
            cpu = torch.ones(2)
            saved = io.BytesIO()
            torch.save(cpu, saved)

            def within(context, body=lambda: None):
                with context:
                    return body()

            def load(location):
                saved.seek(0)
                return torch.load(saved, map_location=location)
            """
        )
        yield run


def explanation(site):
    return (
        "device 'minimal' cannot be used: its plugin 'minimal' (minimal 1.0, module minimal_plugin "
        f"in {site.root}) is installed, but the device is not available: MINIMAL_HIDE is set"
    )


@pytest.mark.parametrize("use", FIRST_USES)
def test_first_use_explains(unavailable, module_site, raises, use):
    with raises("DeviceUnavailableError") as caught:
        unavailable(use)
    assert str(caught.value) == f"DeviceUnavailableError: {explanation(module_site)}"


@pytest.mark.parametrize("use", HARMLESS)
def test_device_agnostic_programs_work(unavailable, use):
    assert unavailable(use) == HARMLESS[use]


@pytest.mark.parametrize("location", ["'minimal'", "'minimal:1'", "torch.device('minimal', 0)"])
def test_loading_says_how_to_do_without(unavailable, module_site, raises, location):
    with raises("DeviceUnavailableError") as caught:
        unavailable(f"load({location})")
    assert str(caught.value) == (
        f"DeviceUnavailableError: {explanation(module_site)}. torch.load(..., map_location='cpu') "
        "loads what was saved on it"
    )
    assert unavailable("load('cpu').sum().item()") == 2.0


@pytest.mark.parametrize("use", ["torch.Generator", "torch.Event", "torch.Stream"])
def test_what_asks_nobody_raises_a_runtime_error(unavailable, use):
    # In C++, by PyTorch: see torch_compat.register_absent_device.
    assert unavailable(
        f"""
        try:
            error = {use}("minimal")
        except RuntimeError as caught:
            error = caught
        isinstance(error, RuntimeError)
        """
    )


def test_state_and_reason_are_recorded(unavailable):
    assert unavailable("[(str(p.state), p.reason) for p in devhost.status().plugins]") == [
        ["unavailable", "MINIMAL_HIDE is set"]
    ]


def test_nothing_of_the_device_is_loaded(unavailable):
    assert unavailable("'minimal_kernels' in sys.modules") is False


def test_backward_works_in_a_forked_process(unavailable):
    assert (
        unavailable(
            """
            def backward():
                x = torch.ones(1, requires_grad=True)
                (x * 3).sum().backward()
                return int(x.grad)

            backward()  # starts the autograd threads of all devices there are
            pid = os.fork()
            if pid == 0:
                os._exit(backward())
            os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            """
        )
        == 3
    )


def test_is_there_again_in_the_next_process(site):
    site.add_package("minimal")
    code = "import torch; print(torch.ones(2, device='minimal').cpu().sum().item())"
    assert "MINIMAL_HIDE is set" in site.python(code, MINIMAL_HIDE="1").stderr
    assert site.python(code).stdout == "2.0\n"
