"""The rules that choose a plugin."""

from types import SimpleNamespace

import pytest

from devhost import SelectionError
from devhost.discovery import InstalledPlugin
from devhost.selection import select


def plugin(name, distribution):
    dist = SimpleNamespace(metadata={"Name": distribution, "Version": "1.0"})
    return InstalledPlugin(SimpleNamespace(name=name, value=f"{name}_hooks", dist=dist))


OPENREG = plugin("openreg", "devhost-openreg")
NPU = plugin("npu", "Vendor_NPU")
TWIN = plugin("npu", "other-npu")
PAIR = plugin("pair", "Vendor_NPU")


def chosen(installed, variable="", ask_site=None):
    return select(installed, {"DEVHOST_DEVICE": variable}, ask_site)


def test_nothing_installed():
    selection = select([], {})
    assert selection == ((), "no device plugin is installed", False)


def test_only_one():
    selection = select([NPU], {})
    assert selection == ((NPU,), "it is the only device plugin installed", False)


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
    ("name", "near"), [("opnreg", "openreg"), ("devhost-opnreg", "devhost-openreg")]
)
def test_the_nearest_name(name, near):
    with pytest.raises(SelectionError, match=rf"Did you mean '{near}'\?$"):
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
