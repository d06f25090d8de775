"""Other packages in the group `torch.backends`: the order in which torch calls them never matters.

torch calls entry points in the order in which importlib.metadata lists distributions, which is the
order of folders on `sys.path` first. So each package is put before devhost and behind it.
"""

import pytest

USE = "torch.ones(1, device='minimal').add(1).cpu().item()"
STATE = "devhost.status().device, devhost.status().slot"

# Records each call, then does what a package does that hangs on `torch.backends`.
BACKEND = """
    import sys
    sys.foreign_calls = []

    def go():
        import torch
        sys.foreign_calls.append(torch._C._get_privateuse1_backend_name())
        {action}
"""
TAKE = """
        import types
        torch.utils.rename_privateuse1_backend("vendor")
        class Module:
            device_count = staticmethod(lambda: 1)
        torch._register_device_module("vendor", Module())
"""


class Foreign:
    """A site with the minimal device and one other backend, before devhost or behind it."""

    def __init__(self, site, base, position):
        self.site = site.add_package("minimal")
        self.position = position
        # Site.base is behind Site.root on the path, and has devhost in it.
        other = type(site)(site.root.parent / "behind", base)
        self.foreign = site if position == "before" else other
        if position == "behind":
            site.base = f"{base}:{other.root}"

    def add(self, action, name="vendor-backend"):
        source = BACKEND.format(action=action.strip())
        entry = f"[torch.backends]\nvendor = {name.replace('-', '_')}:go\n"
        self.foreign.add(name, entry, {f"{name.replace('-', '_')}.py": source}, version="3.1")
        return self

    def order(self):
        """Return whether torch calls the other one before devhost, as torch sees it."""
        result = self.site.python(
            "from importlib.metadata import entry_points\n"
            "print([e.name for e in entry_points(group='torch.backends')])"
        )
        return result.stdout


@pytest.fixture(params=["before", "behind"])
def foreign(site, base, request):
    return Foreign(site, base, request.param)


def test_the_order_is_the_one_meant(foreign):
    foreign.add("pass")
    expected = (
        "['vendor', 'devhost']\n" if foreign.position == "before" else "['devhost', 'vendor']\n"
    )
    assert foreign.order() == expected


def test_patch_runs_once_and_does_not_touch_the_device(foreign):
    foreign.add("torch.patched = True")
    result = foreign.site.python(
        f"import torch, devhost, sys; print({USE}, torch.patched, sys.foreign_calls, {STATE})"
    )
    assert result.stdout == "2.0 True ['privateuseone'] minimal minimal\n"
    assert result.stderr == ""


def test_backend_that_takes_the_slot_gets_it_and_is_named(foreign):
    foreign.add(TAKE)
    result = foreign.site.python(
        f"import torch, devhost, sys; print(torch.vendor.device_count(), {STATE})\n"
        "print(devhost.status().plugins[0].state, 'minimal_plugin' in sys.modules)"
    )
    assert result.stdout == "1 None vendor\nfailed False\n"
    (line,) = result.stderr.splitlines()
    assert line.startswith("devhost: device plugin 'minimal' (minimal 1.0, module minimal_plugin")
    assert "stays inactive" in line
    file = foreign.foreign.root / "vendor_backend.py"
    assert f"it is taken by 'vendor' ({file}, of vendor-backend 3.1)" in line


@pytest.mark.parametrize("failure", ["raise OSError('no card')", "import no_such_module"])
def test_backend_that_fails_does_so_as_without_devhost(foreign, failure):
    foreign.add(failure)
    result = foreign.site.python("import torch")
    without = foreign.site.python("import torch", DEVHOST_DEVICE="none")
    assert result.returncode == without.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        "RuntimeError: Failed to load the backend extension: vendor. You can disable extension "
        "auto-loading with TORCH_DEVICE_BACKEND_AUTOLOAD=0."
    )
    assert result.stderr == without.stderr


def test_torch_logs_may_name_a_log_of_the_plugin(foreign):
    # torch reads TORCH_LOGS after the backends, because they may bring logs of their own.
    foreign.add("pass")
    path = foreign.site.root / "minimal_plugin.py"
    path.write_text(
        path.read_text().replace(
            "    import minimal_kernels\n",
            "    import minimal_kernels\n    import torch._logging._internal as logs\n"
            "    logs.register_log('minimal_log', 'minimal_log')\n",
        )
    )
    result = foreign.site.python(
        "import torch, logging; print(logging.getLogger('minimal_log').level)",
        TORCH_LOGS="+minimal_log",
    )
    assert (result.stdout, result.stderr) == ("10\n", "")


def test_backend_that_loads_devhost_itself_has_the_device(foreign):
    foreign.add("import devhost; devhost.load(); torch.patched = torch.minimal.device_count()")
    result = foreign.site.python(f"import torch, devhost; print({USE}, torch.patched, {STATE})")
    assert (result.stdout, result.stderr) == ("2.0 2 minimal minimal\n", "")


def test_strict_raises_out_of_import_torch(foreign):
    foreign.add(TAKE)
    result = foreign.site.python("import torch", DEVHOST_STRICT="1")
    assert result.returncode == 1
    assert "devhost.errors.SlotTakenError: device plugin 'minimal'" in result.stderr


def test_logging_of_torch_is_as_it_was(foreign):
    foreign.add("pass")
    result = foreign.site.python(
        "import torch; print(torch._logging._init_logs is torch._logging._internal._init_logs)"
    )
    assert result.stdout == "True\n"
