"""Which plugins are found, by both readers of metadata."""

import json
from importlib.metadata import version

from devhost.discovery import owner_of

HOOKS = "[devhost.devices]\n{} = {}_hooks\n"

FOUND = """
import json, sys
from devhost.cli.inventory import take_inventory
from devhost.discovery import discover
def rows(plugins):
    return [[p.name, p.distribution, p.version, p.module, p.location] for p in plugins]
found, inventory = discover(), take_inventory()
print(json.dumps({
    "discovered": rows(found.devices),
    "extensions": rows(found.extensions),
    "inventory": rows(inventory.devices),
    "inventory_extensions": rows(inventory.extensions),
    "shadowed": [[*rows([s.plugin])[0], s.hidden_by] for s in inventory.shadowed],
    "unreadable": [list(u) for u in inventory.unreadable],
    "imported": [m for m in sys.modules if m.endswith("_hooks") and "pluggy" not in m],
}))
"""


def found(site):
    result = site.python(FOUND, "-Werror")
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_both_readers_agree_and_sort(site):
    # In one file, because the order of files may happen to be the right one.
    lines = [f"{name} = {name}_hooks:plugin" for name in ("zeta", "alpha", "middle")]
    site.add("all", "\n".join(["[devhost.devices]", *lines]))
    site.add("ext", "[devhost.extensions]\nwatch = watch_hooks\n")
    outcome = found(site)
    where = str(site.root)
    assert outcome["discovered"] == [
        ["alpha", "all", "1.0", "alpha_hooks", where],
        ["middle", "all", "1.0", "middle_hooks", where],
        ["zeta", "all", "1.0", "zeta_hooks", where],
    ]
    assert outcome["inventory"] == outcome["discovered"]
    assert outcome["extensions"] == [["watch", "ext", "1.0", "watch_hooks", where]]
    assert outcome["inventory_extensions"] == outcome["extensions"]
    assert outcome["shadowed"] == outcome["unreadable"] == outcome["imported"] == []


def test_one_name_in_two_distributions(site):
    site.add("beta-npu", HOOKS.format("npu", "beta"))
    site.add("alpha-npu", HOOKS.format("npu", "alpha"))
    outcome = found(site)
    assert [row[1] for row in outcome["discovered"]] == ["alpha-npu", "beta-npu"]
    assert outcome["inventory"] == outcome["discovered"]


def test_first_copy_on_the_path_counts(site, tmp_path, base):
    site.add("npu", HOOKS.format("npu", "npu"), version="2.0")
    other = type(site)(tmp_path / "other", base).add("npu", HOOKS.format("npu", "npu"))
    site.base = f"{other.root}:{base}"
    outcome = found(site)
    assert outcome["discovered"] == [["npu", "npu", "2.0", "npu_hooks", str(site.root)]]
    assert outcome["inventory"] == outcome["discovered"]
    assert outcome["shadowed"] == [
        ["npu", "npu", "1.0", "npu_hooks", str(other.root), str(site.root)]
    ]


def test_a_first_copy_without_plugins_counts_too(site, tmp_path, base):
    site.add("npu", "[console_scripts]\nnpu = npu:main\n", version="2.0")
    other = type(site)(tmp_path / "other", base).add("npu", HOOKS.format("npu", "npu"))
    site.base = f"{other.root}:{base}"
    outcome = found(site)
    assert outcome["discovered"] == outcome["inventory"] == []


def test_marks_are_those_of_the_same_distribution(site):
    site.add("npu", HOOKS.format("npu", "npu") + "[devhost.ranking]\nnpu = simulated.priority_7\n")
    site.add("gpu", HOOKS.format("gpu", "gpu"))
    site.add("rival", "[devhost.ranking]\nnpu = priority_1\ngpu = simulated.fast\n")
    site.add(
        "odd", HOOKS.format("odd", "odd") + "[devhost.ranking]\nodd = fast.simulated.priority_-1\n"
    )
    result = site.python(
        """
        from devhost.cli.inventory import take_inventory
        from devhost.discovery import discover
        for reader in discover, take_inventory:
            for p in reader().devices:
                print(p.name, p.simulated, p.priority, p.unknown_marks)
        """
    )
    rows = ["gpu False 0 ()", "npu True 7 ()", "odd True 0 ('fast', 'priority_-1')"]
    assert result.stdout.splitlines() == rows * 2


def test_no_file_is_read_for_each_plugin_to_find_and_to_rank_them(site):
    for priority, name in enumerate(("alpha", "beta", "gamma")):
        site.add_marked(name, f"priority_{priority}")
    result = site.python(
        """
        import importlib.metadata
        read = []
        metadata = importlib.metadata.Distribution.metadata.fget
        importlib.metadata.Distribution.metadata = property(
            lambda self: read.append(self) or metadata(self)
        )
        from devhost.discovery import discover
        from devhost.selection import select
        devices = discover().devices
        print([p.name for p in select(devices, {}).plugins], len(read))
        print(devices[0].distribution, len(read))
        """
    )
    # The second line shows that reading would have been counted.
    assert result.stdout.splitlines() == ["['gamma', 'beta', 'alpha'] 0", "alpha-dist 1"]


def test_broken_metadata_still_names_the_plugin(site):
    site.add("nameless", HOOKS.format("one", "one"), metadata=b"Metadata-Version: 2.1\n")
    site.add("latin", HOOKS.format("two", "two"), metadata=b"Name: caf\xe9\nVersion: 1\n")
    outcome = found(site)
    assert outcome["inventory"] == outcome["discovered"]
    by_name = {row[0]: row for row in outcome["discovered"]}
    assert by_name["one"][1].endswith("nameless-1.0.dist-info")
    assert by_name["one"][2] == "unknown"
    assert by_name["two"][3] == "two_hooks"


def test_unreadable_entry_points(site):
    site.add_device("npu", "npu_hooks").add("broken", b"[devhost.devices]\ncaf\xe9 = hooks\n")
    result = site.python(
        """
        import os
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # torch's own scan fails likewise
        import devhost
        print(devhost.status().choice)
        devhost.load()
        print(devhost.status().device)
        from devhost.cli.inventory import take_inventory
        inventory = take_inventory()
        print([p.name for p in inventory.devices])
        print([u.distribution for u in inventory.unreadable])
        """
    )
    choice, device, names, unreadable = result.stdout.splitlines()
    assert "entry points of the installed distributions cannot be read" in choice
    assert "UnicodeDecodeError" in choice
    assert (device, names, unreadable) == ("None", "['npu']", "['broken']")
    (line,) = result.stderr.splitlines()
    assert "UnicodeDecodeError" in line
    assert "`devhost list` names the distribution" in line


def test_owner_of_a_module():
    assert owner_of("pluggy._manager") == f"pluggy {version('pluggy')}"
    assert owner_of("no_such_module") is None
