"""Faulty plugins: each is refused before the rename, with its cause, and torch works on.

All of them are tried in one interpreter, which is possible because none of them may use up the
slot: after every one ``devhost.load()`` tries again.
"""

import json
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parent / "packages"

# Module in tests/packages/faulty -> what its one line in the log must say.
FAULTS = {
    "missing_module": ("ModuleNotFoundError", "No module named", "pip uninstall missing_module"),
    "missing_attribute": ("AttributeError", "'plugin'"),
    "missing_dependency": ("ModuleNotFoundError", "Install the missing module no_such_dependency"),
    "syntax_error": ("SyntaxError", "syntax_error.py"),
    "undefined_symbol": ("ImportError", "libwidget.so.1: undefined symbol: _ZN4flex3fooEv"),
    "exits_at_import": ("SystemExit: 0",),
    "message_without_str": ("OddError", "its message cannot be shown: str() raised SystemExit"),
    "message_huge": ("RuntimeError: first line second line xxx", "... (1000023 characters)"),
    "message_empty": ("failed while importing message_empty: RuntimeError.",),
    "base_exception": ("Unusual: neither Exception nor KeyboardInterrupt",),
    "hook_misspelled": ("1 problem:", "devhost_kernel() is no hook", "mean devhost_kernels?"),
    "hook_unmarked": ("1 problem:", "devhost_probe() is not marked with @devhost.hookimpl"),
    "hook_missing": (
        "2 problems:",
        "the required hook devhost_runtime() is missing",
        "the required hook devhost_kernels() is missing",
    ),
    "hook_of_extensions": ("1 problem:", "devhost_select() is for extensions"),
    "signature_wrong": (
        "2 problems:",
        "devhost_kernels() has an unknown argument 'kernel_registry'; expected "
        "devhost_kernels(registry)",
        "devhost_probe() takes *arguments, which hooks are never given; expected devhost_probe()",
    ),
    "device_returns_dict": ("devhost_device() returned dict, expected devhost.DeviceInfo",),
    "device_field_type": ("devhost_device() raised TypeError", "priority must be an int, not str"),
    "device_other_name": ("DeviceInfo.name is 'flawless' but the entry point is named 'faulty'",),
    "spec_newer": ("version 2 of the hook specs and this devhost has version 1: update devhost",),
    "torch_too_old": ("it needs torch 99.0 or newer, and this is torch 2.",),
    "torch_too_new": ("it supports torch before 2.0, and this is torch 2.",),
    "torch_abi": ("its native part was built for torch 2.1.2, and this is torch 2.",),
    "torch_version_text": ("DeviceInfo.torch_min 'newest' is not a version",),
    "probe_raises": ("failed while calling devhost_probe(): OSError: the driver does not answer",),
    "probe_returns_bool": ("devhost_probe() returned bool, expected devhost.ProbeResult",),
    "probe_without_reason": ("ValueError: ProbeResult: available=False needs a reason",),
    "kernels_exit": ("failed while calling devhost_kernels(): SystemExit: 3",),
    "kernels_composite": ("aten::to.dtype", "CompositeImplicitAutograd", "AutogradPrivateUse1"),
    "runtime_none": ("devhost_runtime() returned None",),
    "runtime_members": (
        "5 problems:",
        "what devhost_runtime() returned has no function device_count()",
        "what devhost_runtime() returned has no function exchange_device()",
        "the runtime's module_members must be a mapping",
        "what devhost_rng() returned has no function default_generator()",
        "devhost_amp() returned list, expected devhost.AmpPolicy",
    ),
    "amp_integer": ("AmpPolicy.supported_dtypes has torch.int8, which is no floating-point",),
    "amp_operators": (
        "6 problems:",
        "AmpPolicy.lower_precision names aten::matmull, and there is no such operator; did you "
        "mean aten::matmul or ",
        "AmpPolicy.lower_precision names mm, and there is no such operator",
        "AmpPolicy.lower_precision names aten::mv, which has a kernel for AutocastPrivateUse1",
        "AmpPolicy.float32 names aten::softmax, and there is no such operator; did you mean "
        "aten::softmax.",
        "AmpPolicy.promote names aten::add_.Tensor, which writes to its argument self",
        "AmpPolicy.promote names aten::add.out, which writes to its argument out",
    ),
    "amp_named_twice": (
        "ValueError: AmpPolicy names aten::mm twice, in lower_precision and in promote",
    ),
    "many_problems": (
        "4 problems:",
        "the required hook devhost_runtime() is missing",
        "DeviceInfo.name is 'cuda' but the entry point is named 'faulty'",
        "version 7 of the hook specs",
        "it needs torch 99.0 or newer",
    ),
}


def device_value(fault):
    return f"{fault}:plugin" if fault == "missing_attribute" else fault


@pytest.fixture(scope="module")
def outcomes(module_site, tmp_path_factory, base):
    """What became of every faulty plugin, by name."""
    found = {}
    sound = (PACKAGES / "sound" / "sound_hooks.py").read_text()
    with module_site.interpreter(TORCH_DEVICE_BACKEND_AUTOLOAD="0") as interpreter:
        interpreter(
            """
            import importlib, logging, sys, torch, devhost
            log = []
            class Recorder(logging.Handler):
                def emit(self, record):
                    log.append([record.levelname, self.format(record)])
            logging.getLogger("devhost").addHandler(Recorder())

            def attempt(root):
                log.clear()
                sys.path.insert(0, root)
                devhost.load()
                sys.path.remove(root)
                plugin, = devhost.status().plugins
                for name in ("sound_hooks", plugin.module):
                    sys.modules.pop(name, None)
                return {
                    "log": list(log),
                    "state": str(plugin.state),
                    "reason": plugin.reason,
                    "traceback": plugin.traceback,
                    "slot": devhost.status().slot,
                    "kernels": torch._C._dispatch_has_kernel_for_dispatch_key(
                        "aten::add.Tensor", "PrivateUse1"),
                    "sum": torch.ones(2).sum().item(),
                }
            """
        )
        for fault in FAULTS:
            root = tmp_path_factory.mktemp(fault)
            faulty = type(module_site)(root, base)
            files = {"sound_hooks.py": sound}
            source = PACKAGES / "faulty" / f"{fault}.py"
            if source.exists():
                files[source.name] = source.read_text()
            faulty.add_device("faulty", device_value(fault), files, distribution=fault)
            found[fault] = interpreter(f"attempt({json.dumps(str(root))})")
    return found


def test_every_fixture_is_tried(outcomes):
    modules = {path.stem for path in (PACKAGES / "faulty").glob("*.py")}
    assert modules == set(FAULTS) - {"missing_module"}


@pytest.mark.parametrize("fault", FAULTS)
def test_is_logged_in_one_line_with_its_cause(outcomes, fault):
    ((level, line),) = outcomes[fault]["log"]
    assert level == "ERROR"
    assert len(line.splitlines()) == 1
    assert len(line) < 2000
    for words in FAULTS[fault]:
        assert words in line
    # Who it is: device, distribution with its version, module.
    assert f"'faulty' ({fault} 1.0, module {fault} in " in line


@pytest.mark.parametrize("fault", FAULTS)
def test_leaves_the_slot_and_torch_alone(outcomes, fault):
    outcome = outcomes[fault]
    assert outcome["slot"] == "privateuseone"
    assert outcome["kernels"] is False
    assert outcome["sum"] == 2.0


@pytest.mark.parametrize("fault", FAULTS)
def test_is_kept_in_the_status(outcomes, fault):
    outcome = outcomes[fault]
    assert outcome["state"] == "failed"
    assert FAULTS[fault][0] in " ".join(outcome["reason"].split())
    assert "Traceback (most recent call last)" in outcome["traceback"]


def test_the_traceback_shows_where_the_plugin_failed(outcomes):
    assert "missing_dependency.py" in outcomes["missing_dependency"]["traceback"]
    assert "No module named 'no_such_dependency'" in outcomes["missing_dependency"]["traceback"]
