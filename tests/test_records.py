"""`devhost.status()`."""

import pytest


def test_steps_of_a_device(minimal):
    assert minimal("[s.name for s in devhost.status().plugins[0].steps]") == [
        "discover",
        "import",
        "check",
        "probe",
        "kernels",
        "runtime",
        "rng",
        "amp",
        "module",
        "register",
    ]
    assert minimal("all(s.seconds > 0 for s in devhost.status().plugins[0].steps)")
    assert minimal("sum(s.seconds for s in devhost.status().plugins[0].steps)") <= minimal(
        "devhost.status().seconds"
    )


def test_fields(minimal, module_site):
    assert minimal("devhost.status().ran") is True
    assert minimal("devhost.status().slot") == "minimal"
    assert minimal("devhost.status().choice") == "it is the only device plugin installed"
    plugin = minimal("vars(devhost.status().plugins[0])")
    del plugin["steps"]
    assert plugin == {
        "name": "minimal",
        "distribution": "minimal",
        "version": "1.0",
        "module": "minimal_plugin",
        "location": str(module_site.root),
        "state": "<State.ACTIVATED: 'activated'>",
        "reason": "",
        "traceback": None,
    }


def test_is_frozen(minimal, raises):
    with raises("FrozenInstanceError"):
        minimal("devhost.status().device = 'other'")


def test_printed(minimal, module_site):
    lines = minimal("str(devhost.status())").splitlines()
    assert lines[:3] == [
        "device: minimal",
        "slot: minimal",
        "choice: it is the only device plugin installed",
    ]
    assert f"  minimal: activated (minimal 1.0, {module_site.root})" in lines


def test_printed_with_a_failure(site):
    site.add_device("ghost", "ghost_module")
    result = site.python("import torch, devhost; print(devhost.status())")
    assert "ghost: failed (ghost 1.0, " in result.stdout
    assert "ModuleNotFoundError: No module named 'ghost_module'" in result.stdout


@pytest.mark.parametrize("value", ["0", "yes"])
def test_before_torch(site, value):
    site.add_device("ghost", "ghost_module")
    result = site.python(
        """
        import sys, devhost
        status = devhost.status()
        print(status.ran, status.device, status.slot, [str(p.state) for p in status.plugins])
        print("torch" in sys.modules)
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD=value,
    )
    assert result.stdout.splitlines() == ["False None None ['discovered']", "False"]
