"""`devhost info`: one plugin in full, whatever state it is in."""

import json
from pathlib import Path

import jsonschema
import pytest

import devhost.cli

SCHEMA = json.loads((Path(devhost.cli.__file__).parent / "info.schema.json").read_text())

# A device that implements no more than it must, and has a fallback.
PLAIN = """
    from devhost import DeviceInfo, hookimpl
    from minimal_plugin import Runtime as MinimalRuntime, devhost_probe

    class Runtime(MinimalRuntime):
        def __init__(self):
            super().__init__()
            self.module_members = {"answer": 42, "memory_allocated": len}

        def can_access_peer(self, index, peer):
            return False

    @hookimpl
    def devhost_device():
        return DeviceInfo(name="plain", description="As plain as can be", priority=3,
                          torch_before="99", built_for_torch=None)

    @hookimpl
    def devhost_runtime():
        return Runtime()

    @hookimpl
    def devhost_kernels(registry):
        import minimal_kernels
        minimal_kernels.register(registry)
        registry.fallback()
"""


def info(site, name, *arguments, **variables):
    result = site.devhost("info", name, "--json", *arguments, **variables)
    assert (result.returncode, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    jsonschema.validate(document, SCHEMA)
    return document


@pytest.fixture(scope="module")
def site_of_two(module_site):
    """An environment with two devices, of which nobody has chosen one."""
    module_site.add_package("minimal")
    return module_site.add_device(
        "plain", "plain_plugin", {"plain_plugin.py": PLAIN}, distribution="acme-plain"
    )


@pytest.fixture(scope="module")
def minimal_info(site_of_two):
    return info(site_of_two, "minimal")


@pytest.fixture(scope="module")
def plain_info(site_of_two):
    return info(site_of_two, "ACME_plain")  # a distribution, in another spelling


def test_identity(site_of_two, minimal_info):
    assert minimal_info["name"] == minimal_info["distribution"] == "minimal"
    assert minimal_info["version"] == "1.0"
    assert minimal_info["location"] == str(site_of_two.root)
    assert minimal_info["entry_point"] == "minimal_plugin"
    assert (minimal_info["state"], minimal_info["reason"]) == ("activated", "")
    assert minimal_info["info"]["description"] == "A minimal device"
    assert minimal_info["info"]["simulated"] is True
    assert minimal_info["probe"] == {
        "available": True,
        "reason": "",
        "devices": ["Minimal 0", "Minimal 1"],
    }


def test_hooks(minimal_info, plain_info):
    required = ["devhost_device", "devhost_kernels", "devhost_probe", "devhost_runtime"]
    assert plain_info["hooks"] == required
    assert minimal_info["hooks"] == sorted([*required, "devhost_amp", "devhost_rng"])


def test_devices(minimal_info):
    assert minimal_info["devices"] == [
        {"name": f"Minimal {index}", "total_memory": 1 << 20, "free_memory": None}
        for index in range(2)
    ]


def test_module(minimal_info, plain_info):
    module = minimal_info["module"]
    assert module["supplied"] == ["answer", "current_device", "device_count", "runtime"]
    assert {"synchronize", "manual_seed", "get_rng_state", "Stream"} <= set(module["derived"])
    assert module["missing"]["memory_allocated"] == "an allocator that is a c10::DeviceAllocator"
    assert module["missing"]["can_device_access_peer"] == "the runtime's can_access_peer"
    assert module["missing"]["fallback_stats"] == "a call of KernelRegistry.fallback"

    module = plain_info["module"]
    assert module["supplied"] == [
        "answer",
        "current_device",
        "device_count",
        "fallback_stats",
        "memory_allocated",
        "reset_fallback_stats",
    ]
    assert "can_device_access_peer" in module["derived"]
    assert module["missing"]["get_rng_state"] == "the hook devhost_rng"
    assert module["missing"]["is_bf16_supported"] == "the hook devhost_amp"


@pytest.mark.parametrize("name", ["minimal", "plain"])
def test_missing_functions_are_those_that_do_not_work(site_of_two, name, request):
    """Called without arguments, a function is not there or raises, or works."""
    module = request.getfixturevalue(f"{name}_info")["module"]
    skipped = {"set_rng_state", "set_rng_state_all", "set_per_process_memory_fraction"}
    skipped |= {"can_device_access_peer", *module["supplied"]}
    known = set(module["derived"]) | set(module["missing"])
    with site_of_two.interpreter(DEVHOST_DEVICE=name) as run:
        broken = run(
            f"""
            import torch
            module = torch.get_device_module({name!r})
            broken = set()
            for name in {sorted(known - skipped)!r}:
                try:
                    getattr(module, name)()
                except (AttributeError, RuntimeError):
                    broken.add(name)
                except TypeError as error:  # it wants arguments
                    assert "argument" in str(error) or "not callable" in str(error), error
            sorted(broken)
            """
        )
    assert broken == sorted(set(module["missing"]) - skipped)


def test_kernels(minimal_info, plain_info):
    kernels = minimal_info["kernels"]
    assert (kernels["native"], kernels["python"]) == (0, 16)
    assert kernels["composite"] > 1000
    assert kernels["fallback"] == 0
    assert kernels["none"] > 100

    assert plain_info["kernels"] == {**kernels, "fallback": kernels["none"], "none": 0}


def test_as_text(site_of_two):
    result = site_of_two.devhost("info", "plain")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    rows = dict(line.split(maxsplit=1) for line in lines)
    assert rows["description"] == "As plain as can be"
    assert rows["distribution"] == "acme-plain 1.0"
    assert rows["state"] == "activated"
    assert rows["priority"] == "3"
    assert rows["torch"] == "2.13 or newer, before 99"
    assert "device 1      Minimal 1, 1 MiB of memory" in lines
    assert rows["supplied"].startswith("answer, current_device, device_count")
    assert rows["operators"].startswith("0 native, 16 python, ")
    assert "missing       get_rng_state, get_rng_state_all, initial_seed, set_rng_state, " in (
        result.stdout
    )
    assert "\x1b" not in result.stdout


def test_unavailable(site_of_two):
    document = info(site_of_two, "minimal", MINIMAL_HIDE="1")
    assert (document["state"], document["reason"]) == ("unavailable", "MINIMAL_HIDE is set")
    assert document["info"]["name"] == "minimal"
    assert document["probe"]["available"] is False
    assert document["devices"] is document["module"] is document["kernels"] is None


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise OSError('no driver')", "failed while importing bad_plugin: OSError: no driver"),
        ("import os\nos.abort()", "crashed with SIGABRT while importing bad_plugin"),
        (
            "from minimal_plugin import *\nfrom minimal_plugin import devhost_device, "
            "devhost_probe, devhost_runtime, devhost_kernels",
            "DeviceInfo.name is 'minimal' but the entry point is named 'bad'",
        ),
    ],
)
def test_failed(site, source, reason):
    site.add_package("minimal").add_device("bad", "bad_plugin", {"bad_plugin.py": source})
    document = info(site, "bad")
    assert document["state"] == "failed"
    assert reason in document["reason"]
    assert document["distribution"] == "bad"


def test_without_torch(site):
    site.add_package("minimal")
    (site.root / "torch.py").write_text("raise ImportError('no torch here')")
    document = info(site, "minimal")
    assert document["state"] == "failed"
    assert document["reason"] == "torch cannot be imported: ImportError: no torch here"
    assert document["info"]["description"] == "A minimal device"
    assert document["probe"]["available"] is True


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "minmal",
            "no device plugin 'minmal' is installed; installed: minimal (minimal), plain "
            "(acme-plain). Did you mean 'minimal'?",
        ),
        ("acme-plane", "Did you mean 'acme-plain'?"),
        ("", "no device plugin '' is installed; installed: minimal"),
    ],
)
def test_unknown_name(site_of_two, name, message):
    result = site_of_two.devhost("info", name)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("devhost info: ")
    assert message in result.stderr


def test_name_of_several(site):
    site.add_package("minimal").add_device("minimal", "minimal_plugin", distribution="twin")
    result = site.devhost("info", "minimal")
    assert result.returncode == 1
    assert result.stderr == (
        "devhost info: 'minimal' fits 2 plugins: minimal (minimal), minimal (twin)\n"
    )
    assert info(site, "twin")["state"] == "activated"
