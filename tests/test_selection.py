"""The rules that choose a plugin."""

import sys
from types import SimpleNamespace

import pytest

from devhost import SelectionError
from devhost.blocking import block
from devhost.discovery import InstalledPlugin
from devhost.selection import select


def plugin(name, distribution, marks=""):
    dist = SimpleNamespace(metadata={"Name": distribution, "Version": "1.0"})
    return InstalledPlugin(SimpleNamespace(name=name, value=f"{name}_hooks", dist=dist), marks)


OPENREG = plugin("openreg", "devhost-openreg")
NPU = plugin("npu", "Vendor_NPU")
TWIN = plugin("npu", "other-npu")
PAIR = plugin("pair", "Vendor_NPU")


def ranked(name, marks=""):
    return plugin(name, f"{name}-dist", marks)


@pytest.fixture(autouse=True)
def choice_file(tmp_path, monkeypatch):
    """The file of the saved choice, which is not there."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    file = tmp_path / "etc" / "devhost" / "device"
    file.parent.mkdir(parents=True)
    return file


def chosen(installed, variable="", ask_site=None, disable=""):
    blocked = block(installed, (), {"DEVHOST_DISABLE": disable})
    return select(installed, {"DEVHOST_DEVICE": variable}, ask_site, blocked)


def test_nothing_installed():
    selection = select([], {})
    assert (selection.plugins, selection.disabled) == ((), False)
    assert selection.reason == "no device plugin is installed"


def test_only_one():
    selection = select([NPU], {})
    assert (selection.plugins, selection.disabled) == ((NPU,), False)
    assert selection.reason == "it is the only device plugin installed"


@pytest.mark.parametrize("name", ["npu", "NPU", " npu ", "vendor-npu", "vendor.npu", "Vendor_NPU"])
def test_device_and_distribution_names_are_compared_normalised(name):
    assert chosen([NPU, OPENREG], name).plugins == (NPU,)


def test_a_set_variable_counts_also_with_one_plugin():
    with pytest.raises(SelectionError, match="no device plugin 'cuda' is installed"):
        chosen([NPU], "cuda")


def test_an_empty_variable_is_not_set():
    assert chosen([NPU], "  ").plugins == (NPU,)


def test_order_of_preference():
    assert chosen([NPU, OPENREG], "openreg,npu").plugins == (OPENREG, NPU)
    assert chosen([NPU, OPENREG], "openreg,,npu,openreg,").plugins == (OPENREG, NPU)
    selection = chosen([NPU, OPENREG], "tpu,openreg")
    assert selection.plugins == (OPENREG,)
    assert selection.reason == "DEVHOST_DEVICE=tpu,openreg; not installed: tpu"


def test_none():
    selection = chosen([NPU], "none")
    assert (selection.plugins, selection.disabled) == ((), True)
    with pytest.raises(SelectionError, match="'none' cannot be combined with other names"):
        chosen([NPU], "npu,none")


def test_a_list_without_names():
    with pytest.raises(SelectionError, match="DEVHOST_DEVICE=, names no device plugin"):
        chosen([NPU], ",")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("opnreg", "'openreg'"),
        ("devhost-opnreg", "'devhost-openreg'"),
        ("zzz,opnreg", "'openreg'"),
        ("opnreg,npv", "'openreg' and 'npu'"),
        ("npw,npv", "'npu'"),
    ],
)
def test_the_nearest_name(name, near):
    with pytest.raises(SelectionError, match=rf"Did you mean {near}\?$"):
        chosen([NPU, OPENREG], name)


def test_nothing_is_near():
    with pytest.raises(SelectionError, match=r"installed: npu \(Vendor_NPU\)$"):
        chosen([NPU], "zzz")


def test_two_distributions_with_one_device_name():
    with pytest.raises(SelectionError, match=r"'npu' is ambiguous.*Give the distribution name"):
        chosen([NPU, TWIN], "npu")
    assert chosen([NPU, TWIN], "other_npu").plugins == (TWIN,)


def test_two_devices_of_one_distribution():
    with pytest.raises(SelectionError, match=r"'vendor-npu' is ambiguous.*Give the device name"):
        chosen([NPU, PAIR], "vendor-npu")


def test_the_site_is_asked_only_without_the_variable():
    assert chosen([NPU, OPENREG], "", lambda: "openreg").plugins == (OPENREG,)
    assert chosen([NPU, OPENREG], "npu", lambda: "openreg").plugins == (NPU,)
    assert chosen([NPU, OPENREG], "", lambda: "none").disabled is True
    assert chosen([NPU, OPENREG], "", lambda: None).plugins == ()


@pytest.mark.parametrize("answer", [3, "", "openrge"])
def test_the_site_answers_nonsense(answer):
    with pytest.raises(SelectionError, match="devhost_select"):
        chosen([NPU, OPENREG], "", lambda: answer)


def test_the_saved_choice(choice_file):
    choice_file.write_text("openreg\n")
    selection = chosen([NPU, OPENREG])
    assert selection.plugins == (OPENREG,)
    assert selection.reason == f"the choice 'openreg' saved by `devhost use` in {choice_file}"
    # It comes before the site, which is asked only where nobody has chosen.
    assert chosen([NPU, OPENREG], "", lambda: "npu").plugins == (OPENREG,)


def test_the_saved_choice_may_be_a_list_or_none(choice_file):
    choice_file.write_text("tpu, devhost-openreg,npu\n")
    selection = chosen([NPU, OPENREG])
    assert selection.plugins == (OPENREG, NPU)
    assert selection.reason.endswith("; not installed: tpu")
    choice_file.write_text("none")
    assert chosen([NPU]).disabled is True


def test_the_variable_overrides_the_saved_choice(choice_file):
    choice_file.write_bytes(b"\xff unreadable, which does not matter here")
    selection = chosen([NPU, OPENREG], "npu")
    assert selection.plugins == (NPU,)
    assert selection.reason == (
        f"DEVHOST_DEVICE=npu; this overrides the choice saved in {choice_file}"
    )


@pytest.mark.parametrize(
    ("installed", "reason"),
    [
        (
            [OPENREG],
            "no device plugin 'openrg' is installed; installed: openreg (devhost-openreg). "
            "Did you mean 'openreg'? Choose anew",
        ),
        ([NPU], "no device plugin 'openrg' is installed; installed: npu (Vendor_NPU). Choose anew"),
        ([], "no device plugin 'openrg' is installed; installed: none. Choose anew"),
    ],
)
def test_the_saved_choice_is_not_installed(choice_file, installed, reason):
    choice_file.write_text("openrg\n")
    with pytest.raises(SelectionError) as caught:
        chosen(installed)
    assert str(caught.value) == (
        f"the choice 'openrg' saved by `devhost use` in {choice_file}: {reason} with "
        "`devhost use NAME`, or remove the choice with `devhost use --clear`"
    )


@pytest.mark.parametrize(
    ("marks", "order"),
    [
        ({"a": "simulated", "b": ""}, "b a"),
        ({"a": "simulated.priority_99", "b": ""}, "b a"),
        ({"a": "", "b": "priority_10"}, "b a"),
        ({"a": "priority_9", "b": "priority_10", "c": "simulated", "d": ""}, "b a d c"),
        ({"a": "priority_2.simulated", "b": "simulated", "c": "simulated.priority_3"}, "c a b"),
        # Between equals nothing is chosen, nor anything that comes after them.
        ({"a": "priority_1", "b": "", "c": ""}, "a"),
        ({"a": "priority_1", "b": "", "c": "", "d": "simulated"}, "a"),
        ({"a": "", "b": "simulated", "c": "simulated"}, "a"),
        ({"a": "", "b": ""}, ""),
        ({"a": "", "b": "", "c": "simulated"}, ""),
        # What means nothing changes nothing.
        ({"a": "priority_x", "b": "priority_1"}, "b a"),
        ({"a": "simulation", "b": "simulated"}, "a b"),
    ],
)
def test_ranking(marks, order):
    installed = [ranked(name, text) for name, text in marks.items()]
    for candidates in (installed, installed[::-1]):
        assert [p.name for p in chosen(candidates).plugins] == order.split()


def test_reason_of_a_ranking():
    npu, old, new = ranked("npu", "priority_2"), ranked("old"), ranked("new")
    sim = ranked("sim", "simulated.priority_1")
    assert chosen([npu, sim]).reason == (
        "nobody chose, so the first available by kind and priority is taken: "
        "npu (hardware of priority 2), sim (simulated of priority 1)"
    )
    assert chosen([new, npu, old, sim]).reason == (
        "nobody chose, so the first available by kind and priority is taken: "
        "npu (hardware of priority 2). The ranking ends there: new (new-dist), old (old-dist) are "
        "equal, hardware of priority 0 each"
    )
    assert chosen([new, old, sim]).reason == (
        "3 device plugins are installed and none comes first: new (new-dist), old (old-dist) are "
        "equal, hardware of priority 0 each. Set DEVHOST_DEVICE to one of them, or save a choice "
        "with `devhost use NAME`; 'none' silences this"
    )


def test_the_ranking_comes_last(choice_file):
    npu, sim = ranked("npu"), ranked("sim", "simulated")
    assert chosen([npu, sim], "sim").plugins == (sim,)
    assert chosen([npu, sim], "", lambda: "sim").plugins == (sim,)
    choice_file.write_text("sim")
    assert chosen([npu, sim]).plugins == (sim,)


def test_disabled_plugins_are_not_chosen():
    npu, sim = ranked("npu"), ranked("sim", "simulated")
    selection = chosen([npu, sim], disable="npu")
    assert selection.plugins == (sim,)
    assert selection.reason == (
        "it is the only device plugin installed that DEVHOST_DISABLE=npu does not keep out"
    )
    selection = chosen([npu, sim], disable="sim-dist, npu")
    assert (selection.plugins, selection.disabled) == ((), True)
    assert selection.reason == "DEVHOST_DISABLE=sim-dist,npu keeps all device plugins out"


def test_disabling_decides_a_tie_and_an_ambiguity():
    assert chosen([NPU, OPENREG], disable="openreg").plugins == (NPU,)
    assert chosen([NPU, TWIN], "npu", disable="other-npu").plugins == (NPU,)


def test_a_disabled_plugin_is_named(choice_file):
    with pytest.raises(SelectionError) as caught:
        chosen([NPU, OPENREG], "npu", disable="vendor-npu")
    assert (
        str(caught.value) == "DEVHOST_DEVICE=npu: 'npu' is disabled by DEVHOST_DISABLE=vendor-npu"
    )
    selection = chosen([NPU, OPENREG], "npu,openreg", disable="npu")
    assert selection.plugins == (OPENREG,)
    assert selection.reason == ("DEVHOST_DEVICE=npu,openreg; disabled by DEVHOST_DISABLE=npu: npu")
    with pytest.raises(SelectionError, match="'npu' is disabled by DEVHOST_DISABLE=npu; no device"):
        chosen([NPU, OPENREG], "tpu,npu", disable="npu")
    with pytest.raises(SelectionError, match="devhost_select chose 'npu': 'npu' is disabled by"):
        chosen([NPU, OPENREG], "", lambda: "npu", disable="npu")
    choice_file.write_text("npu")
    with pytest.raises(SelectionError, match=r"'npu' is disabled by .*`devhost use --clear`$"):
        chosen([NPU, OPENREG], disable="npu")


def test_nothing_that_is_asked_imports_a_plugin(monkeypatch):
    monkeypatch.setattr(InstalledPlugin, "load", lambda self: pytest.fail("it was imported"))
    assert len(chosen([ranked("npu"), ranked("sim", "simulated")]).plugins) == 2
