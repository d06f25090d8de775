"""`devhost doctor`: torch, the configuration, what is installed, and other packages' backends."""

from pathlib import Path

import pytest

import devhost

TAKE = """
    import torch

    def go():
        torch.utils.rename_privateuse1_backend("vendor")
"""


def test_environment_without_plugins(site, doctor):
    document = doctor(site)
    assert document["severity"] == "ok"
    assert document["devhost"] == devhost.__version__
    assert document["torch"].startswith("2.")
    assert [finding["check"] for finding in document["findings"]] == [
        "python",
        "devhost",
        "configuration",
        "conflict",
        "torch",
        "import",
    ]
    ((_, cause, _),) = document.about("import")
    assert cause == "`import torch` activates no device: no device plugin is installed"
    ((_, cause, _),) = document.about("torch")
    assert cause.startswith("works by itself, from ")


def test_configuration(site, doctor):
    document = doctor(
        site,
        DEVHOST_DEVCIE="minimal",
        DEVHOST_XYZZY="1",
        DEVHOST_STRICT="yes",
        DEVHOST_FALLBACK="alow",
        DEVHOST_DEVICE="minmal",
        TORCH_DEVICE_BACKEND_AUTOLOAD="true",
    )
    assert document.about("configuration", "DEVHOST_DEVCIE") == [
        (
            "warning",
            "DEVHOST_DEVCIE is set, and devhost has no such variable: it has no effect",
            "Did you mean DEVHOST_DEVICE?",
        )
    ]
    ((_, _, remedy),) = document.about("configuration", "DEVHOST_XYZZY")
    assert remedy.startswith("devhost reads DEVHOST_DEVICE, DEVHOST_DISABLE, ")
    ((severity, cause, _),) = document.about("configuration", "DEVHOST_STRICT")
    assert (severity, cause) == ("warning", "DEVHOST_STRICT=yes is ignored: it must be 0 or 1")
    ((severity, cause, _),) = document.about("configuration", "DEVHOST_FALLBACK")
    assert severity == "error"
    assert cause.startswith("DEVHOST_FALLBACK=alow is not a policy: it must be allow, warn or")
    ((severity, cause, _),) = document.about("configuration", "TORCH_DEVICE_BACKEND_AUTOLOAD")
    assert severity == "warning"
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=true switches autoload off" in cause
    misspelled = [finding for finding in document.about("import") if "'minmal'" in finding[1]]
    assert misspelled[0][0] == "error"


def test_variables_that_are_set_are_shown(site, doctor):
    site.add_package("minimal")
    document = doctor(site, DEVHOST_DEVICE="none", DEVHOST_FALLBACK="warn")
    ((severity, cause, _),) = document.about("configuration")
    assert (severity, cause) == ("ok", "DEVHOST_DEVICE=none, DEVHOST_FALLBACK=warn")
    assert document.about("import") == [
        (
            "ok",
            "`import torch` activates no device: DEVHOST_DEVICE=none switches device plugins off",
            "",
        )
    ]
    assert document.about("plugin")[-1][1].startswith("minimal 1.0 works")


def test_every_variable_that_devhost_reads_is_known():
    from devhost.cli.configuration import KNOWN

    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    for name in KNOWN:
        assert f"## `{name}`" in page
    headings = {line[4:-1] for line in page.splitlines() if line.startswith("## `DEVHOST_")}
    assert headings == set(KNOWN)


def leave_out(site, prefix):
    """Take what begins so out of the packages that the site finds."""
    base = site.root.parent / "reduced"
    base.mkdir()
    for entry in site.base.iterdir():
        if not entry.name.startswith(prefix):
            (base / entry.name).symlink_to(entry)
    site.base = base


def test_without_torch(site, doctor):
    site.add_package("minimal").add_device("ghost", "ghost_module")
    leave_out(site, "torch")
    document = doctor(site)
    assert document["torch"] is None
    assert document.about("torch") == [
        ("error", "torch is not installed", "Install torch>=2.13"),
    ]
    assert document.about("plugin", "minimal") == [
        ("ok", "minimal 1.0 is sound as far as that shows without torch", "")
    ]
    ((severity, cause, _),) = document.about("plugin", "ghost")
    assert severity == "error"
    assert "fails: ModuleNotFoundError: No module named 'ghost_module'" in cause
    assert "torch none, or broken" in document["bug_report"]


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        (
            "raise ImportError('libtorch_cpu.so: cannot open shared object file')",
            "ImportError: libtorch_cpu.so: cannot open shared object file",
        ),
        (
            "import os, sys\nsys.stderr.write('Illegal instruction\\n')\nos.abort()",
            "crashed with SIGABRT while importing torch (last line on stderr: Illegal instruction)",
        ),
        ("raise ModuleNotFoundError('no numbers', name='numbers')", "no numbers"),
    ],
)
def test_broken_torch(site, source, cause, doctor):
    site.add_package("minimal")
    (site.root / "torch.py").write_text(source)
    document = doctor(site)
    ((severity, found, remedy),) = document.about("torch")
    assert severity == "error"
    assert found.startswith("torch does not work, without any plugin: ")
    assert found.endswith(cause)
    assert remedy.startswith("Reinstall torch")
    assert document.about("plugin")[0][0] == "ok"


def test_torch_of_another_version(site, doctor):
    site.root.mkdir()
    (site.root / "torch.py").write_text(
        "__version__ = '2.5.1'\n"
        "class ones(list):\n"
        "    def __init__(self, n): self.n = n\n"
        "    def __add__(self, other): return self\n"
        "    def tolist(self): return [2.0] * self.n\n"
    )
    ((severity, cause, remedy),) = doctor(site).about("torch")
    assert severity == "error"
    assert cause == "this devhost supports torch>=2.13, and 2.5.1 is installed"
    assert remedy.startswith("Install torch>=2.13")


def test_conflicts(site, tmp_path, base, doctor):
    site.add_package("minimal").add_device("minimal", "minimal_plugin", distribution="twin")
    site.add("broken", b"[devhost.devices]\ncaf\xe9 = hooks\n")
    other = type(site)(tmp_path / "other", base).add_package("minimal")
    site.base = f"{base}:{other.root}"
    document = doctor(site)
    twice, shadowed, unreadable = document.about("conflict")
    assert twice[0] == shadowed[0] == "warning"
    assert twice[1].startswith("2 plugins have a device named 'minimal': minimal 1.0 (")
    assert f"minimal 1.0 in {other.root} is hidden by the copy in {site.root}" in shadowed[1]
    assert unreadable[0] == "error"
    assert "cannot be read, which breaks `import torch`: UnicodeDecodeError" in unreadable[1]
    ((severity, cause, _),) = document.about("import")
    assert severity == "error"
    assert "`import torch` fails: UnicodeDecodeError" in cause
    works = [f for f in document.about("plugin") if f[0] == "ok"]
    assert [w[1].split()[0] for w in works] == ["minimal", "twin"]


def test_devhost_that_is_not_installed(site, doctor):
    leave_out(site, f"devhost-{devhost.__version__}")
    ((severity, cause, remedy),) = doctor(site).about("devhost")
    assert severity == "error"
    assert "no installed distribution has the entry point devhost.autoload:autoload" in cause
    assert remedy.startswith("Install devhost with pip")


def test_devhost_that_is_installed_twice(site, doctor):
    site.add(
        "devhost-fork",
        "[torch.backends]\ndevhost = devhost.autoload:autoload\n",
    ).add("devhost", "[torch.backends]\ndevhost = devhost.autoload:autoload\n", version="0.0.9")
    messages = doctor(site).about("devhost")
    assert [severity for severity, _, _ in messages] == ["warning"] * 3
    causes = " ".join(cause for _, cause, _ in messages)
    assert "torch finds devhost 2 times: devhost" in causes
    assert f"the copy of devhost in {site.root} hides the one in {site.base}" in causes
    assert "the installed distribution says 0.0.9" in causes


def test_backend_that_takes_the_slot(site, doctor):
    site.add("vendor-backend", "[torch.backends]\nvendor = vendor:go\n", {"vendor.py": TAKE})
    document = doctor(site)
    assert document["severity"] == "ok"
    taken = "takes PyTorch's slot, as 'vendor', which has registered no device module"
    assert document.about("backend") == [
        ("ok", f"vendor-backend 1.0 (vendor:go) {taken}", ""),
    ]

    site.add_package("minimal")
    document = doctor(site)
    ((severity, cause, remedy),) = document.about("backend")
    assert severity == "warning"
    assert cause.endswith(f"{taken}, so that devhost's plugins stay inactive")
    assert remedy.startswith("Uninstall vendor-backend, or the plugins")
    ((severity, cause, remedy),) = document.about("import")
    assert severity == "error"
    assert "stays inactive: PyTorch has one slot for such devices" in cause
    assert remedy.startswith("Uninstall one of the two")


def test_other_backends(site, doctor):
    sources = {
        "patch": "def go():\n    import torch\n    torch.patched = True\n",
        "failing": "def go():\n    raise OSError('no card')\n",
        "late": f"{TAKE}\n        raise OSError('no card')\n",
        "crashing": "def go():\n    import os\n    os.abort()\n",
        "missing": "",
    }
    for name, source in sources.items():
        site.add(name, f"[torch.backends]\n{name} = {name}:go\n", {f"{name}.py": source})
    document = doctor(site)
    assert document.about("backend", "patch") == [
        (
            "ok",
            "patch 1.0 (patch:go), which `import torch` calls as well, changes nothing of "
            "PyTorch's slot",
            "",
        )
    ]
    for name, cause in {
        "failing": "fails: OSError: no card",
        "late": "fails: OSError: no card, after taking PyTorch's slot as 'vendor', which",
        "crashing": "crashed with SIGABRT while calling crashing:go",
        "missing": "fails: AttributeError: module 'missing' has no attribute 'go'",
    }.items():
        ((severity, found, remedy),) = document.about("backend", name)
        assert severity == "error"
        assert f"{name} 1.0 ({name}:go), which `import torch` calls without devhost, " in found
        assert cause in found
        assert remedy.startswith(f"Update or uninstall {name}; TORCH_DEVICE_BACKEND_AUTOLOAD=0")
    ((severity, cause, _),) = document.about("import")
    assert severity == "error"


def test_backend_that_hangs(site, doctor):
    source = "def go():\n    import time\n    time.sleep(600)\n"
    site.add("stuck", "[torch.backends]\nstuck = stuck:go\n", {"stuck.py": source})
    document = doctor(site, "--timeout", "12")
    ((severity, cause, _),) = document.about("backend")
    assert severity == "error"
    assert cause.endswith("did not finish within 12 s, while calling stuck:go")
    ((severity, cause, _),) = document.about("import")
    assert severity == "error"
    assert "`import torch` did not finish within 12 s, while importing torch with all" in cause
