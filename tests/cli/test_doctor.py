"""`devhost doctor`: every kind of damage is a finding with its cause and remedy."""

import json
from pathlib import Path

import jsonschema
import pytest

import devhost
import devhost.cli

SCHEMA = json.loads((Path(devhost.cli.__file__).parent / "doctor.schema.json").read_text())

# A device that passes every test: the minimal one with a random operator.
COMPLETE = """
    from minimal_plugin import *
    from minimal_plugin import Rng as MinimalRng, devhost_probe, devhost_runtime, devhost_amp
    from devhost import DeviceInfo, hookimpl

    RNG = None

    @hookimpl
    def devhost_device():
        return DeviceInfo(name="{name}", description="Derived from the minimal device")

    @hookimpl
    def devhost_rng():
        global RNG
        RNG = MinimalRng()
        return RNG

    @hookimpl
    def devhost_kernels(registry):
        import minimal_kernels

        def uniform_(tensor, lower=0.0, upper=1.0, *, generator=None):
            used = generator or RNG.default_generator(0)
            minimal_kernels.unwrap(tensor).uniform_(lower, upper, generator=used)
            return tensor

        {change}
        minimal_kernels.register(registry)
        registry.impl("aten::uniform_", uniform_)
"""

# Device name -> what its plugin does otherwise than COMPLETE, before it registers its kernels.
CHANGES = {
    "complete": "pass",
    "wrong_sum": "minimal_kernels.add = lambda a, b, alpha=1: minimal_kernels.mul(a, b)",
    "wrong_copy": """minimal_kernels.copy_from = lambda source, target, non_blocking=False: (
            minimal_kernels.unwrap(target).copy_(minimal_kernels.unwrap(source)).add_(1), target)[1]
    """,
    "unseeded": """def uniform_(tensor, lower=0.0, upper=1.0, *, generator=None):
            import os, torch
            seed = int.from_bytes(os.urandom(4), "little")
            g = torch.Generator().manual_seed(seed)
            minimal_kernels.unwrap(tensor).uniform_(lower, upper, generator=g)
            return tensor
    """,
    "uncast": """minimal_kernels.mm = lambda a, b: minimal_kernels.wrap(
            minimal_kernels.unwrap(a).float() @ minimal_kernels.unwrap(b).float())
    """,
    "crashing_sum": """import ctypes
        minimal_kernels.add = lambda *args, **kwargs: ctypes.string_at(0)
    """,
    "raising_sum": """def add(*args, **kwargs):
            raise OSError("the card has fallen off the bus")
        minimal_kernels.add = add
    """,
}

# The same for plugins that do not come so far.
BROKEN = {
    "badlib": "raise ImportError('libwidget.so.1: undefined symbol: _ZN4flex3fooEv')",
    "segfault": "import ctypes\nctypes.string_at(0)",
    "badkernels": """
        from devhost import DeviceInfo, hookimpl
        from minimal_plugin import devhost_runtime, devhost_probe

        @hookimpl
        def devhost_device():
            return DeviceInfo(name="badkernels", description="Crashes in its native part")

        @hookimpl
        def devhost_kernels(registry):
            import ctypes
            ctypes.string_at(0)
    """,
    "leaving": "import os\nos._exit(5)",
    "babbling": """
        import os
        os.write(1, b"caf\\xe9 \\xff\\xfe\\n")
        os.write(2, b"last words: caf\\xe9\\n")
        os.abort()
    """,
    "old": """
        from devhost import DeviceInfo, hookimpl
        from minimal_plugin import devhost_kernels, devhost_probe, devhost_runtime

        @hookimpl
        def devhost_device():
            return DeviceInfo(name="old", description="Of the past", built_for_torch="2.1.2")
    """,
    "importing": """
        import torch
        from devhost import DeviceInfo, hookimpl
        from minimal_plugin import devhost_kernels, devhost_runtime, devhost_probe

        @hookimpl
        def devhost_device():
            return DeviceInfo(name="importing", description="Imports torch at its top")
    """,
}

TAKE = """
    import torch

    def go():
        torch.utils.rename_privateuse1_backend("vendor")
"""


def doctor(site, *arguments, **variables):
    """Return the exit status of `devhost doctor --json` and what it says."""
    result = site.devhost("doctor", "--json", *arguments, **variables)
    assert result.stderr == ""
    document = json.loads(result.stdout)
    jsonschema.validate(document, SCHEMA)
    assert result.returncode == (1 if document["severity"] == "error" else 0)
    return document


def about(document, check, subject=None):
    """Return severity, cause and remedy of the findings of a check."""
    return [
        (finding["severity"], finding["cause"], finding["remedy"])
        for finding in document["findings"]
        if finding["check"] == check and subject in (None, finding["subject"])
    ]


def test_environment_without_plugins(site):
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
    ((_, cause, _),) = about(document, "import")
    assert cause == "`import torch` activates no device: no device plugin is installed"
    ((_, cause, _),) = about(document, "torch")
    assert cause.startswith("works by itself, from ")


def test_one_sound_plugin(site):
    site.add_package("minimal").add_device(
        "complete",
        "complete_plugin",
        {"complete_plugin.py": COMPLETE.format(name="complete", change="pass")},
    )
    (site.root / "minimal-1.0.dist-info" / "entry_points.txt").unlink()
    result = site.devhost("doctor")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("ok       plugin complete: ")]
    assert line.startswith(
        "ok       plugin complete: complete 1.0 works: 2 devices; passed round trip, add, random "
        "numbers, autocast ("
    )
    (line,) = [line for line in lines if line.startswith("ok       import: ")]
    assert "`import torch` activates device 'complete': it is the only device plugin" in line
    assert "Nothing is wrong." in lines
    assert lines[-1] == "```"
    assert "\x1b" not in result.stdout


@pytest.fixture(scope="module")
def sick(module_site):
    """Findings in an environment of many plugins, nearly all of them broken."""
    module_site.add_package("minimal")
    for name, change in CHANGES.items():
        source = COMPLETE.format(name=name, change=change.strip())
        module_site.add_device(name, f"{name}_plugin", {f"{name}_plugin.py": source})
    for name, source in BROKEN.items():
        module_site.add_device(name, f"{name}_plugin", {f"{name}_plugin.py": source})
    module_site.add_device("ghost", "ghost_module")
    module_site.add_device("nn-", "minimal_plugin", distribution="badname")
    module_site.add(
        "site-rules",
        "[devhost.extensions]\nrules = rules\nother = no_such_module\n",
        {
            "rules.py": """
                from devhost import hookimpl

                @hookimpl
                def devhost_select(candidates):
                    return "minimal"
            """
        },
    )
    return doctor(module_site)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        (
            "wrong_sum",
            "wrong_sum 1.0 is active, but the test 'add' failed: the sum of two tensors is "
            "[0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0] (torch.float32), expected "
            "[3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0] (torch.float32)",
        ),
        ("wrong_copy", "the test 'round trip' failed: a tensor copied to the device and back is"),
        ("unseeded", "the test 'random numbers' failed: torch.manual_seed() with the same seed"),
        (
            "uncast",
            "the test 'autocast' failed: mm of float32 under autocast gives torch.float32, "
            "expected torch.bfloat16",
        ),
        ("raising_sum", "the test 'add' failed: OSError: the card has fallen off the bus"),
        ("crashing_sum", "crashed with SIGSEGV while adding two tensors on the device"),
        ("badlib", "failed while importing badlib_plugin: ImportError: libwidget.so.1: undefined"),
        ("segfault", "crashed with SIGSEGV while importing segfault_plugin"),
        ("badkernels", "crashed with SIGSEGV while calling devhost_kernels()"),
        ("leaving", "ended the process with exit status 5 while importing leaving_plugin"),
        (
            "babbling",
            "crashed with SIGABRT while importing babbling_plugin (last line on stderr: "
            "last words: caf\ufffd)",
        ),
        ("old", "its native part was built for torch 2.1.2, and this is torch 2."),
        ("ghost", "ModuleNotFoundError: No module named 'ghost_module'"),
        ("nn-", "'nn-' cannot be the name of a device: torch.device() cannot parse it"),
    ],
)
def test_plugin_that_does_not_work(sick, name, cause):
    severity, found, remedy = about(sick, "plugin", name)[0]
    assert severity == "error"
    assert cause in found
    assert remedy


def test_remedy_and_traceback_of_a_plugin_that_raises(sick):
    ((_, cause, remedy),) = about(sick, "plugin", "ghost")
    assert cause.startswith("'ghost' (ghost 1.0, module ghost_module in ")
    assert remedy.startswith("Its files are not there: reinstall ghost, or remove what is left")
    (finding,) = [f for f in sick["findings"] if f["subject"] == "badlib"]
    assert 'badlib_plugin.py", line 1, in <module>' in finding["traceback"]


def test_sound_plugins_beside_them(sick):
    assert about(sick, "plugin", "complete") == [
        (
            "ok",
            "complete 1.0 works: 2 devices; passed round trip, add, random numbers, autocast",
            "",
        )
    ]
    missing, works = about(sick, "plugin", "minimal")
    assert missing[0] == "warning"
    assert missing[1].startswith(
        "minimal 1.0 cannot do the test 'random numbers': NotImplementedError: Could not run "
        "'aten::uniform_'"
    )
    assert works[1] == "minimal 1.0 works: 2 devices; passed round trip, add, autocast"


def test_plugin_that_imports_torch_at_its_top(sick):
    (warning, works) = about(sick, "plugin", "importing")
    assert warning[0] == "warning"
    assert "its hook module importing_plugin imports torch at its top" in warning[1]
    assert works[1].endswith("passed round trip, add; has no random numbers, autocast")


def test_extensions(sick):
    sound, broken = about(sick, "extension", "rules"), about(sick, "extension", "other")
    assert sound == [("ok", "site-rules 1.0 can be loaded, and its hooks are sound", "")]
    ((severity, cause, remedy),) = broken
    assert severity == "error"
    assert "fails: ModuleNotFoundError: No module named 'no_such_module'" in cause
    assert "Update or reinstall site-rules" in remedy


def test_crash_in_import_torch_names_the_plugin_and_the_step(site):
    site.add_device("segfault", "segfault_plugin", {"segfault_plugin.py": BROKEN["segfault"]})
    ((severity, cause, _),) = about(doctor(site), "import")
    assert severity == "error"
    assert cause == (
        "with everything that is installed, `import torch` crashed with SIGSEGV while 'segfault': "
        "importing segfault_plugin"
    )


def test_what_import_torch_makes_of_them(sick):
    ((severity, cause, _),) = about(sick, "import")
    assert severity == "error"  # the extension that cannot be imported
    assert "no_such_module" in cause


def test_bug_report_names_every_plugin_that_fails(sick):
    block = sick["bug_report"]
    for name in (*CHANGES, *BROKEN, "ghost"):
        assert f"plugin {name}: " in block
    assert block.startswith("```text\n")
    assert block.endswith("\n```")
    assert f"torch {sick['torch']}" in block


def test_plugin_that_hangs(site):
    source = "import time\nprint('going to sleep')\ntime.sleep(600)\n"
    site.add_device("hanging", "hanging_plugin", {"hanging_plugin.py": source})
    document = doctor(site, "--timeout", "15", DEVHOST_DEVICE="none")
    ((severity, cause, _),) = about(document, "plugin")
    assert severity == "error"
    assert "did not finish within 15 s, while importing hanging_plugin" in cause
    (finding,) = [f for f in document["findings"] if f["check"] == "plugin"]
    assert finding["seconds"] >= 15


def test_unavailable_plugin_is_no_error(site):
    site.add_package("minimal")
    document = doctor(site, MINIMAL_HIDE="1")
    ((severity, cause, _),) = about(document, "plugin")
    assert severity == "warning"
    assert cause == (
        "minimal 1.0 is sound, but its device is not available here: MINIMAL_HIDE is set"
    )
    ((severity, cause, _),) = about(document, "import")
    assert severity == "ok"
    assert "activates device 'minimal', which is not available: it is the only" in cause


def test_configuration(site):
    document = doctor(
        site,
        DEVHOST_DEVCIE="minimal",
        DEVHOST_XYZZY="1",
        DEVHOST_STRICT="yes",
        DEVHOST_FALLBACK="alow",
        DEVHOST_DEVICE="minmal",
        TORCH_DEVICE_BACKEND_AUTOLOAD="true",
    )
    assert about(document, "configuration", "DEVHOST_DEVCIE") == [
        (
            "warning",
            "DEVHOST_DEVCIE is set, and devhost has no such variable: it has no effect",
            "Did you mean DEVHOST_DEVICE?",
        )
    ]
    ((_, _, remedy),) = about(document, "configuration", "DEVHOST_XYZZY")
    assert remedy.startswith("devhost reads DEVHOST_DEVICE, DEVHOST_DISABLE, ")
    ((severity, cause, _),) = about(document, "configuration", "DEVHOST_STRICT")
    assert (severity, cause) == ("warning", "DEVHOST_STRICT=yes is ignored: it must be 0 or 1")
    ((severity, cause, _),) = about(document, "configuration", "DEVHOST_FALLBACK")
    assert severity == "error"
    assert cause.startswith("DEVHOST_FALLBACK=alow is not a policy: it must be allow, warn or")
    ((severity, cause, _),) = about(document, "configuration", "TORCH_DEVICE_BACKEND_AUTOLOAD")
    assert severity == "warning"
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=true switches autoload off" in cause
    misspelled = [finding for finding in about(document, "import") if "'minmal'" in finding[1]]
    assert misspelled[0][0] == "error"


def test_variables_that_are_set_are_shown(site):
    site.add_package("minimal")
    document = doctor(site, DEVHOST_DEVICE="none", DEVHOST_FALLBACK="warn")
    ((severity, cause, _),) = about(document, "configuration")
    assert (severity, cause) == ("ok", "DEVHOST_DEVICE=none, DEVHOST_FALLBACK=warn")
    assert about(document, "import") == [
        (
            "ok",
            "`import torch` activates no device: DEVHOST_DEVICE=none switches device plugins off",
            "",
        )
    ]
    assert about(document, "plugin")[-1][1].startswith("minimal 1.0 works")


def test_disabled_plugin_is_not_tried(site):
    site.add_package("minimal").add_device(
        "segfault", "segfault_plugin", {"segfault_plugin.py": BROKEN["segfault"]}
    )
    document = doctor(site, DEVHOST_DISABLE="segfault,segfolt")
    assert about(document, "plugin", "segfault") == []
    assert about(document, "configuration", "segfault") == [
        ("ok", "segfault 1.0 is not tried: DEVHOST_DISABLE=segfault,segfolt keeps it out", "")
    ]
    ((severity, cause, remedy),) = about(document, "configuration", "DEVHOST_DISABLE")
    assert (severity, remedy) == ("warning", "Correct DEVHOST_DISABLE")
    assert cause.endswith("called 'segfolt'. Did you mean 'segfault'?")
    assert about(document, "plugin", "minimal")[-1][1].startswith("minimal 1.0 works")


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


def test_without_torch(site):
    site.add_package("minimal").add_device("ghost", "ghost_module")
    leave_out(site, "torch")
    document = doctor(site)
    assert document["torch"] is None
    assert about(document, "torch") == [
        ("error", "torch is not installed", "Install torch>=2.13"),
    ]
    assert about(document, "plugin", "minimal") == [
        ("ok", "minimal 1.0 is sound as far as that shows without torch", "")
    ]
    ((severity, cause, _),) = about(document, "plugin", "ghost")
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
def test_broken_torch(site, source, cause):
    site.add_package("minimal")
    (site.root / "torch.py").write_text(source)
    document = doctor(site)
    ((severity, found, remedy),) = about(document, "torch")
    assert severity == "error"
    assert found.startswith("torch does not work, without any plugin: ")
    assert found.endswith(cause)
    assert remedy.startswith("Reinstall torch")
    assert about(document, "plugin")[0][0] == "ok"


def test_torch_of_another_version(site):
    site.root.mkdir()
    (site.root / "torch.py").write_text(
        "__version__ = '2.5.1'\n"
        "class ones(list):\n"
        "    def __init__(self, n): self.n = n\n"
        "    def __add__(self, other): return self\n"
        "    def tolist(self): return [2.0] * self.n\n"
    )
    ((severity, cause, remedy),) = about(doctor(site), "torch")
    assert severity == "error"
    assert cause == "this devhost supports torch>=2.13, and 2.5.1 is installed"
    assert remedy.startswith("Install torch>=2.13")


def test_conflicts(site, tmp_path, base):
    site.add_package("minimal").add_device("minimal", "minimal_plugin", distribution="twin")
    site.add("broken", b"[devhost.devices]\ncaf\xe9 = hooks\n")
    other = type(site)(tmp_path / "other", base).add_package("minimal")
    site.base = f"{base}:{other.root}"
    document = doctor(site)
    twice, shadowed, unreadable = about(document, "conflict")
    assert twice[0] == shadowed[0] == "warning"
    assert twice[1].startswith("2 plugins have a device named 'minimal': minimal 1.0 (")
    assert f"minimal 1.0 in {other.root} is hidden by the copy in {site.root}" in shadowed[1]
    assert unreadable[0] == "error"
    assert "cannot be read, which breaks `import torch`: UnicodeDecodeError" in unreadable[1]
    ((severity, cause, _),) = about(document, "import")
    assert severity == "error"
    assert "`import torch` fails: UnicodeDecodeError" in cause
    works = [f for f in about(document, "plugin") if f[0] == "ok"]
    assert [w[1].split()[0] for w in works] == ["minimal", "twin"]


def test_devhost_that_is_not_installed(site):
    leave_out(site, f"devhost-{devhost.__version__}")
    ((severity, cause, remedy),) = about(doctor(site), "devhost")
    assert severity == "error"
    assert "no installed distribution has the entry point devhost.autoload:autoload" in cause
    assert remedy.startswith("Install devhost with pip")


def test_devhost_that_is_installed_twice(site):
    site.add(
        "devhost-fork",
        "[torch.backends]\ndevhost = devhost.autoload:autoload\n",
    ).add("devhost", "[torch.backends]\ndevhost = devhost.autoload:autoload\n", version="0.0.9")
    messages = about(doctor(site), "devhost")
    assert [severity for severity, _, _ in messages] == ["warning"] * 3
    causes = " ".join(cause for _, cause, _ in messages)
    assert "torch finds devhost 2 times: devhost" in causes
    assert f"the copy of devhost in {site.root} hides the one in {site.base}" in causes
    assert "the installed distribution says 0.0.9" in causes


def test_backend_that_takes_the_slot(site):
    site.add("vendor-backend", "[torch.backends]\nvendor = vendor:go\n", {"vendor.py": TAKE})
    document = doctor(site)
    assert document["severity"] == "ok"
    taken = "takes PyTorch's slot, as 'vendor', which has registered no device module"
    assert about(document, "backend") == [
        ("ok", f"vendor-backend 1.0 (vendor:go) {taken}", ""),
    ]

    site.add_package("minimal")
    document = doctor(site)
    ((severity, cause, remedy),) = about(document, "backend")
    assert severity == "warning"
    assert cause.endswith(f"{taken}, so that devhost's plugins stay inactive")
    assert remedy.startswith("Uninstall vendor-backend, or the plugins")
    ((severity, cause, remedy),) = about(document, "import")
    assert severity == "error"
    assert "stays inactive: PyTorch has one slot for such devices" in cause
    assert remedy.startswith("Uninstall one of the two")


def test_other_backends(site):
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
    assert about(document, "backend", "patch") == [
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
        ((severity, found, remedy),) = about(document, "backend", name)
        assert severity == "error"
        assert f"{name} 1.0 ({name}:go), which `import torch` calls without devhost, " in found
        assert cause in found
        assert remedy.startswith(f"Update or uninstall {name}; TORCH_DEVICE_BACKEND_AUTOLOAD=0")
    ((severity, cause, _),) = about(document, "import")
    assert severity == "error"


def test_backend_that_hangs(site):
    source = "def go():\n    import time\n    time.sleep(600)\n"
    site.add("stuck", "[torch.backends]\nstuck = stuck:go\n", {"stuck.py": source})
    document = doctor(site, "--timeout", "12")
    ((severity, cause, _),) = about(document, "backend")
    assert severity == "error"
    assert cause.endswith("did not finish within 12 s, while calling stuck:go")
    ((severity, cause, _),) = about(document, "import")
    assert severity == "error"
    assert "`import torch` did not finish within 12 s, while importing torch with all" in cause
