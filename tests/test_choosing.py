"""The rules of selection in an environment: `import torch` and `devhost list` agree on them."""

import json
from pathlib import Path

import jsonschema
import pytest

import devhost.cli

SCHEMA = json.loads((Path(devhost.cli.__file__).parent / "list.schema.json").read_text())

IMPORT = """
import json, sys, torch, devhost
status = devhost.status()
print(json.dumps({
    "device": status.device,
    "choice": status.choice,
    "states": {p.name: str(p.state) for p in status.plugins},
    "imported": sorted(m.removesuffix("_hooks") for m in sys.modules
                       if m in {f"{p.name}_hooks" for p in status.plugins}),
}))
"""

SIM = {"asim": "simulated"}
HARDWARE = {**SIM, "npu": ""}
TIE = {**HARDWARE, "zpu": ""}
BEST = {**TIE, "best": "priority_10"}

# Devices with their marks; variables; the saved choice. Then the device that gets the slot, and
# which plugins are imported for it.
SITUATIONS = {
    "real before simulated": (HARDWARE, {}, None, "npu", "npu"),
    "higher priority": (BEST, {}, None, "best", "best"),
    "priority among simulated": (
        {**SIM, "esim": "simulated.priority_2"}, {}, None, "esim", "esim",
    ),
    "tie": (TIE, {}, None, None, ""),
    "next of the ranking": (HARDWARE, {"HIDDEN": "npu"}, None, "asim", "asim npu"),
    "ranking ends at a tie": (BEST, {"HIDDEN": "best"}, None, "best", "best"),
    "nothing available": (HARDWARE, {"HIDDEN": "npu,asim"}, None, "npu", "asim npu"),
    "first of the ranking fails": ({**HARDWARE, "bad": "priority_1"}, {}, None, "npu", "npu"),
    "saved": (TIE, {}, "zpu", "zpu", "zpu"),
    "saved list": (TIE, {"HIDDEN": "zpu"}, "zpu,npu-dist", "npu", "npu zpu"),
    "saved none": (TIE, {}, "none", None, ""),
    "saved and not installed": (HARDWARE, {}, "npv", None, ""),
    "saved and nothing is installed": ({}, {}, "npu", None, ""),
    "saved nonsense": (HARDWARE, {}, b"caf\xe9", None, ""),
    "variable overrides saved": (TIE, {"DEVHOST_DEVICE": "npu"}, "zpu", "npu", "npu"),
    "disabled": (TIE, {"DEVHOST_DISABLE": "npu"}, None, "zpu", "zpu"),
    "disabled and saved": (TIE, {"DEVHOST_DISABLE": "zpu"}, "zpu", None, ""),
    "disabled and wanted": (
        TIE, {"DEVHOST_DISABLE": "zpu", "DEVHOST_DEVICE": "zpu,asim"}, None, "asim", "asim",
    ),
    "all disabled": (HARDWARE, {"DEVHOST_DISABLE": "npu,asim-dist"}, None, None, ""),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_import_and_list_agree(site, situation):
    devices, variables, saved, device, imported = SITUATIONS[situation]
    for name, marks in devices.items():
        site.add_marked(name, marks)
    if "bad" in devices:
        (site.root / "bad_hooks.py").write_text("raise OSError('no driver')")
    if saved is not None:
        site.save_choice(saved)
    result = site.python(IMPORT, **variables)
    outcome = json.loads(result.stdout)
    assert outcome["device"] == device
    assert outcome["imported"] == imported.split()

    document = json.loads(site.devhost("list", "--json", **variables).stdout)
    jsonschema.validate(document, SCHEMA)
    assert document["selection"]["device"] == device
    assert document["selection"]["reason"] == outcome["choice"]
    assert [p["name"] for p in document["plugins"] if p["active"]] == [device] * bool(device)
    kept_out = {name for name, state in outcome["states"].items() if state == "disabled"}
    if "DEVHOST_DISABLE" in variables:
        assert {p["name"] for p in document["plugins"] if p["status"] == "disabled"} == kept_out

    # Whatever ends with no device although somebody wants one is said, in one line.
    silent = device is not None or saved == "none" or situation == "all disabled"
    lines = result.stderr.splitlines()
    if "bad" in devices:
        assert len(lines) == 1
        assert "OSError: no driver" in lines[0]
    else:
        assert len(lines) == (0 if silent else 1)
        assert silent or lines[0].endswith(outcome["choice"])


def test_errors_about_a_saved_choice_name_the_file(site):
    site.add_marked("npu")
    for saved, words in (("npv", "Did you mean 'npu'?"), (b"caf\xe9", "UnicodeDecodeError")):
        site.save_choice(saved)
        line = site.python("import torch").stderr
        assert str(site.choice_file) in line
        assert words in line
        assert "`devhost use --clear`" in line
        assert len(line.splitlines()) == 1


def test_marks_that_do_not_fit_are_noted(site):
    site.add_marked("fits", "simulated.priority_3", "simulated=True, priority=3")
    site.add_marked("kind", "", "simulated=True")
    site.add_marked("number", "priority_4", "priority=5, simulated=True")
    site.add_marked("plain", "simulated")
    site.add_marked("typo", "simulatde.priority_x")
    site.add_device("ghost", "ghost_hooks").add("ghost2", "[devhost.ranking]\nfits = priority_9\n")
    document = json.loads(site.devhost("list", "--json").stdout)
    reasons = {plugin["name"]: plugin["reason"] for plugin in document["plugins"]}
    assert reasons["fits"] == ""
    assert reasons["kind"] == (
        "it is chosen as hardware of priority 0, and its devhost_device() says simulated of "
        'priority 0: write kind = "simulated" in the entry-point group devhost.ranking'
    )
    assert reasons["number"] == (
        "it is chosen as hardware of priority 4, and its devhost_device() says simulated of "
        'priority 5: write number = "simulated.priority_5" in the entry-point group devhost.ranking'
    )
    assert reasons["plain"] == (
        "it is chosen as simulated of priority 0, and its devhost_device() says hardware of "
        "priority 0: leave it out of the entry-point group devhost.ranking"
    )
    assert reasons["typo"] == "; ".join(
        f"its mark '{mark}' in the entry-point group devhost.ranking means nothing: marks are "
        "simulated and priority_N with a number N, and there is a dot between two of them"
        for mark in ("simulatde", "priority_x")
    )
    assert reasons["ghost"] == "ModuleNotFoundError: No module named 'ghost_hooks'"
    # It is a note: the plugin can be used.
    assert {p["name"]: p["status"] for p in document["plugins"]}["kind"] == "available"
