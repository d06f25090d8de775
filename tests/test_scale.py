"""Many plugins beside each other: only the chosen one costs anything, and none delays another.

How long it takes is measured by `python benchmarks --group hosting`, and asserted nowhere.
"""

import itertools
import json
import string

import pytest

DISTRIBUTIONS = 300
DEVICES = [f"dev_{a}{b}" for a, b in itertools.product(string.ascii_lowercase[:5], "abcdefghij")]
CHOSEN, CRASHING, HANGING, UNAVAILABLE = "dev_cc", "dev_aa", "dev_ab", "dev_ej"

PLUGIN = """
import sound_hooks
from devhost import DeviceInfo, ProbeResult, hookimpl
from sound_hooks import devhost_kernels, devhost_runtime

@hookimpl
def devhost_device():
    return DeviceInfo(name="{name}", description="Number {number}")

@hookimpl
def devhost_probe():
    {probe}
    return ProbeResult(available=True, devices=("{name} 0",))
"""
# Every probe waits until all others have been called: they end only if all run side by side.
MEET = """
    import pathlib, time
    folder = pathlib.Path({folder!r})
    (folder / "{name}").touch()
    while len(list(folder.iterdir())) < {count}:
        time.sleep(0.01)
"""
ODD = {
    CRASHING: "import ctypes; ctypes.string_at(0)",
    HANGING: "import time; time.sleep(600)",
    UNAVAILABLE: "return ProbeResult(available=False, reason='unplugged')",
}


def add_devices(site, probe_of):
    site.add_package("sound")
    for number, name in enumerate(DEVICES):
        source = PLUGIN.format(name=name, number=number, probe=probe_of(name))
        site.add_device(name, f"{name}_plugin", {f"{name}_plugin.py": source})
    for number in range(DISTRIBUTIONS - len(DEVICES)):
        site.add(f"other-{number}", f"[console_scripts]\nother-{number} = other:main\n")
    return site


@pytest.fixture(scope="module")
def crowded(module_site):
    """An environment with fifty device plugins, three of them odd, among 300 distributions."""
    return add_devices(module_site, lambda name: ODD.get(name, "pass"))


def test_only_the_chosen_plugin_is_imported(crowded):
    result = crowded.python(
        """
        import json, sys, torch, devhost
        status = devhost.status()
        print(json.dumps({
            "device": status.device,
            "imported": sorted(m for m in sys.modules if m.endswith("_plugin")),
            "states": {plugin.name: str(plugin.state) for plugin in status.plugins},
            "steps": {plugin.name: [s.name for s in plugin.steps] for plugin in status.plugins},
        }))
        """,
        DEVHOST_DEVICE=CHOSEN,
    )
    assert result.stderr == ""
    seen = json.loads(result.stdout)
    assert seen["device"] == CHOSEN
    assert seen["imported"] == [f"{CHOSEN}_plugin"]
    assert seen["states"].pop(CHOSEN) == "activated"
    assert set(seen["states"].values()) == {"not selected"}
    assert set(DEVICES) - {CHOSEN} <= seen["states"].keys()
    assert seen["steps"].pop(CHOSEN)[-1] == "register"
    assert all(steps == ["discover"] for steps in seen["steps"].values())


def test_list_has_every_row_right(crowded):
    result = crowded.devhost("list", "--json", "--timeout", "5", DEVHOST_DEVICE=CHOSEN)
    assert result.returncode == 0, result.stderr
    rows = {row["name"]: row for row in json.loads(result.stdout)["plugins"]}
    assert [name for name in rows if name in DEVICES] == DEVICES
    for number, name in enumerate(DEVICES):
        row = rows[name]
        assert row["description"] == ("" if name in (CRASHING, HANGING) else f"Number {number}")
        assert row["devices"] == ([] if name in ODD else [f"{name} 0"])
        assert row["active"] is (name == CHOSEN)
    odd = {name: (rows[name]["status"], rows[name]["reason"]) for name in ODD}
    assert odd == {
        CRASHING: ("failed", "crashed with SIGSEGV while calling devhost_probe()"),
        HANGING: ("failed", "did not finish within 5 s, while calling devhost_probe()"),
        UNAVAILABLE: ("unavailable", "unplugged"),
    }
    others = [row["status"] for name, row in rows.items() if name not in ODD]
    assert set(others) == {"available"}


def test_probes_run_side_by_side(site, tmp_path):
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    add_devices(
        site,
        lambda name: MEET.format(folder=str(meeting), name=name, count=len(DEVICES)).strip(),
    )
    result = site.devhost("list", "--json", "--timeout", "100")
    rows = json.loads(result.stdout)["plugins"]
    assert [(row["status"], row["reason"]) for row in rows] == [("available", "")] * len(rows)
    assert len(rows) == len(DEVICES) + 1  # and the package with the hooks that they share
