"""`devhost list`: every plugin is a row, whatever it does."""

import json
from pathlib import Path

import jsonschema
import pytest

import devhost
import devhost.cli

SCHEMA = json.loads((Path(devhost.cli.__file__).parent / "list.schema.json").read_text())

ODD_PLUGINS = {
    "segfault": "import ctypes\nctypes.string_at(0)",
    "abort": "import os, sys\nsys.stderr.write('terminate called\\n')\nos.abort()",
    "hanging": "import time\nprint('going to sleep')\ntime.sleep(600)",
    "leaving": "import os\nos._exit(5)",
    "exiting": "import sys\nsys.exit(7)",
    "talking": "print('x' * 1_000_000)\nraise OSError('after a long talk')",
    "badlib": "raise ImportError('libwidget.so.1: undefined symbol: _ZN4flex3fooEv')",
    "probing": """
        import ctypes
        from devhost import DeviceInfo, hookimpl
        from sound_hooks import devhost_kernels, devhost_runtime

        @hookimpl
        def devhost_device():
            return DeviceInfo(name="probing", description="Crashes when it is probed")

        @hookimpl
        def devhost_probe():
            ctypes.string_at(0)
    """,
    "demanding": """
        from devhost import DeviceInfo, hookimpl
        from sound_hooks import devhost_kernels, devhost_probe, devhost_runtime

        @hookimpl
        def devhost_device():
            return DeviceInfo(name="demanding", description="Of tomorrow", torch_min="99")
    """,
}


def report(site, *arguments, **variables):
    result = site.devhost("list", "--json", *arguments, **variables)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    jsonschema.validate(document, SCHEMA)
    return document


def test_no_plugin(site):
    document = report(site)
    assert document["schema_version"] == 1
    assert document["devhost"] == devhost.__version__
    assert document["torch"].startswith("2.")
    assert document["plugins"] == []
    assert document["selection"] == {
        "device": None,
        "reason": "no device plugin is installed",
        "autoload": True,
        "notes": [],
    }
    result = site.devhost("list")
    assert result.stdout == "`import torch` activates no device: no device plugin is installed.\n"


def test_one_plugin(site):
    site.add_package("minimal")
    (plugin,) = report(site)["plugins"]
    assert plugin.pop("seconds") > 0
    assert plugin == {
        "name": "minimal",
        "distribution": "minimal",
        "version": "1.0",
        "location": str(site.root),
        "entry_point": "minimal_plugin",
        "status": "available",
        "active": True,
        "reason": "",
        "devices": ["Minimal 0", "Minimal 1"],
        "description": "A minimal device",
        "simulated": True,
    }
    result = site.devhost("list")
    assert (result.returncode, result.stderr) == (0, "")
    row = next(line for line in result.stdout.splitlines() if "A minimal device" in line)
    for cell in ("minimal", "1.0", "available (active)", "Minimal 0, Minimal 1"):
        assert cell in row
    assert "`import torch` activates device 'minimal': it is the only" in result.stdout


def test_torch_is_imported_nowhere(site):
    site.add_package("minimal")
    (site.root / "sitecustomize.py").write_text("")
    # A torch that cannot be imported: neither the command nor the plugin's process minds.
    (site.root / "torch.py").write_text("raise SystemError('torch was imported')")
    (plugin,) = report(site)["plugins"]
    assert plugin["status"] == "available"


def test_plugin_that_imports_torch_is_shown_to(site):
    site.add_package("sound")
    (site.root / "torch.py").write_text("")
    path = site.root / "sound_hooks.py"
    path.write_text(path.read_text().replace("\nfrom types", "\nimport torch\nfrom types"))
    (plugin,) = report(site)["plugins"]
    assert plugin["status"] == "available"
    assert "its hook module imports torch" in plugin["reason"]


def test_unavailable_plugin(site):
    site.add_package("minimal")
    document = report(site, MINIMAL_HIDE="1")
    (plugin,) = document["plugins"]
    assert (plugin["status"], plugin["reason"]) == ("unavailable", "MINIMAL_HIDE is set")
    assert plugin["active"] is True
    assert document["selection"]["device"] == "minimal"


@pytest.fixture(scope="module")
def odd(module_site):
    """The rows of plugins that crash, hang, leave or are no good, by name."""
    module_site.add_package("sound").add_package("minimal")
    for name, source in ODD_PLUGINS.items():
        module_site.add_device(name, f"{name}_plugin", {f"{name}_plugin.py": source})
    module_site.add_device("ghost", "ghost_module")
    module_site.add_device("nn-", "sound_hooks", distribution="badname")
    module_site.add("broken", b"[devhost.devices]\ncaf\xe9 = hooks\n")
    document = report(module_site, "--timeout", "5")
    return {plugin["name"] or plugin["distribution"]: plugin for plugin in document["plugins"]}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("segfault", "crashed with SIGSEGV while importing segfault_plugin"),
        (
            "abort",
            "crashed with SIGABRT while importing abort_plugin (last line on stderr: "
            "terminate called)",
        ),
        ("leaving", "ended the process with exit status 5 while importing leaving_plugin"),
        ("exiting", "SystemExit: 7"),
        ("talking", "OSError: after a long talk"),
        ("badlib", "ImportError: libwidget.so.1: undefined symbol: _ZN4flex3fooEv"),
        ("probing", "crashed with SIGSEGV while calling devhost_probe()"),
        ("ghost", "ModuleNotFoundError: No module named 'ghost_module'"),
    ],
)
def test_plugin_that_cannot_be_used(odd, name, reason):
    assert (odd[name]["status"], odd[name]["reason"]) == ("failed", reason)
    assert odd[name]["active"] is False


def test_plugin_that_hangs_is_given_up(odd):
    reason = odd["hanging"]["reason"]
    assert reason.startswith("did not finish within 5 s, while importing hanging_plugin")


def test_plugin_that_fails_a_check(odd):
    assert odd["demanding"]["status"] == "failed"
    assert "it needs torch 99 or newer, and this is torch 2." in odd["demanding"]["reason"]
    assert odd["demanding"]["description"] == "Of tomorrow"
    assert odd["nn-"]["status"] == "failed"
    assert "torch.device() cannot parse it" in odd["nn-"]["reason"]


def test_distribution_whose_metadata_is_broken(odd):
    assert odd["broken"]["status"] == "failed"
    assert "its entry points cannot be read, which breaks `import torch`" in odd["broken"]["reason"]
    assert "UnicodeDecodeError" in odd["broken"]["reason"]


def test_sound_plugins_beside_them(odd):
    assert odd["minimal"]["status"] == odd["faulty"]["status"] == "available"
    assert list(odd) == [*sorted(set(odd) - {"broken"}), "broken"]


def test_reasons_are_whole_in_a_pipe(site):
    site.add_device("ghost", "ghost_module_with_a_name_so_long_that_it_cannot_fit_a_terminal_line")
    result = site.devhost("list", COLUMNS="40")
    assert (
        "ghost: ModuleNotFoundError: No module named "
        "'ghost_module_with_a_name_so_long_that_it_cannot_fit_a_terminal_line'"
    ) in result.stdout.splitlines()
    assert "\x1b" not in result.stdout


def test_shadowed_copy(site, tmp_path, base):
    site.add_package("minimal")
    other = type(site)(tmp_path / "other", base).add_package("minimal")
    site.base = f"{other.root}:{base}"
    first, second = report(site)["plugins"]
    rows = {row["status"]: row for row in (first, second)}
    assert rows["shadowed"]["location"] == str(other.root)
    assert f"hidden by the copy in {site.root}" in rows["shadowed"]["reason"]
    assert rows["available"]["active"] is True


@pytest.mark.parametrize(
    ("variable", "device", "reason"),
    [
        ("", "faulty", "nobody chose, so the first available by kind and priority is taken: "),
        ("minimal", "minimal", "DEVHOST_DEVICE=minimal"),
        ("none", None, "DEVHOST_DEVICE=none switches device plugins off"),
        (
            "minmal",
            None,
            "no device plugin 'minmal' is installed; installed: faulty (sound), "
            "minimal (minimal). Did you mean 'minimal'?",
        ),
        ("minimal,sound", "faulty", "DEVHOST_DEVICE=minimal,sound"),
    ],
)
def test_shows_what_would_be_activated(site, variable, device, reason):
    site.add_package("sound").add_package("minimal")
    hide = {"MINIMAL_HIDE": "1"} if "," in variable else {}
    document = report(site, DEVHOST_DEVICE=variable, **hide)
    assert document["selection"]["device"] == device
    assert reason in document["selection"]["reason"]
    assert [p["name"] for p in document["plugins"] if p["active"]] == ([device] if device else [])


def test_autoload_switched_off(site):
    site.add_package("minimal")
    assert report(site, TORCH_DEVICE_BACKEND_AUTOLOAD="0")["selection"]["autoload"] is False
    result = site.devhost("list", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert "it does not run now, because TORCH_DEVICE_BACKEND_AUTOLOAD is not 1" in result.stdout


def test_without_torch(site):
    site.add_package("minimal")
    base = site.root.parent / "torchless"
    base.mkdir()
    for entry in site.base.iterdir():
        if not entry.name.startswith("torch"):
            (base / entry.name).symlink_to(entry)
    site.base = base
    document = report(site)
    assert document["torch"] is None
    assert document["plugins"][0]["status"] == "available"
    assert site.devhost("list").stdout.splitlines()[-1] == "torch is not installed."


def test_foreign_backends_are_listed_and_not_imported(site):
    site.add_package("minimal").add(
        "vendor-backend",
        "[torch.backends]\nzz = vendor:last\nvendor = vendor:go\n",
        {"vendor.py": "raise SystemError('vendor was imported')"},
        version="3.1",
    )
    document = report(site)
    assert document["foreign_backends"] == [
        {
            "name": name,
            "distribution": "vendor-backend",
            "version": "3.1",
            "location": str(site.root),
            "entry_point": value,
        }
        for name, value in (("vendor", "vendor:go"), ("zz", "vendor:last"))
    ]
    assert (
        "foreign backend: vendor:go of vendor-backend 3.1, which `import torch` calls as well; "
        "`devhost doctor` says what it does to PyTorch's slot"
    ) in site.devhost("list").stdout.splitlines()
