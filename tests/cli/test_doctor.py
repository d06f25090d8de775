"""`devhost doctor` and plugins: every kind of damage is a finding with its cause and remedy."""

import pytest

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
def sick(module_site, doctor):
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
    severity, found, remedy = sick.about("plugin", name)[0]
    assert severity == "error"
    assert cause in found
    assert remedy


def test_remedy_and_traceback_of_a_plugin_that_raises(sick):
    ((_, cause, remedy),) = sick.about("plugin", "ghost")
    assert cause.startswith("'ghost' (ghost 1.0, module ghost_module in ")
    assert remedy.startswith("Its files are not there: reinstall ghost, or remove what is left")
    (finding,) = [f for f in sick["findings"] if f["subject"] == "badlib"]
    assert 'badlib_plugin.py", line 1, in <module>' in finding["traceback"]


def test_sound_plugins_beside_them(sick):
    assert sick.about("plugin", "complete") == [
        (
            "ok",
            "complete 1.0 works: 2 devices; passed round trip, add, random numbers, autocast",
            "",
        )
    ]
    missing, works = sick.about("plugin", "minimal")
    assert missing[0] == "warning"
    assert missing[1].startswith(
        "minimal 1.0 cannot do the test 'random numbers': NotImplementedError: Could not run "
        "'aten::uniform_'"
    )
    assert works[1] == "minimal 1.0 works: 2 devices; passed round trip, add, autocast"


def test_plugin_that_imports_torch_at_its_top(sick):
    (warning, works) = sick.about("plugin", "importing")
    assert warning[0] == "warning"
    assert "its hook module importing_plugin imports torch at its top" in warning[1]
    assert works[1].endswith("passed round trip, add; has no random numbers, autocast")


def test_extensions(sick):
    sound, broken = sick.about("extension", "rules"), sick.about("extension", "other")
    assert sound == [("ok", "site-rules 1.0 can be loaded, and its hooks are sound", "")]
    ((severity, cause, remedy),) = broken
    assert severity == "error"
    assert "fails: ModuleNotFoundError: No module named 'no_such_module'" in cause
    assert "Update or reinstall site-rules" in remedy


def test_crash_in_import_torch_names_the_plugin_and_the_step(site, doctor):
    site.add_device("segfault", "segfault_plugin", {"segfault_plugin.py": BROKEN["segfault"]})
    ((severity, cause, _),) = doctor(site).about("import")
    assert severity == "error"
    assert cause == (
        "with everything that is installed, `import torch` crashed with SIGSEGV while 'segfault': "
        "importing segfault_plugin"
    )


def test_what_import_torch_makes_of_them(sick):
    ((severity, cause, _),) = sick.about("import")
    assert severity == "error"  # the extension that cannot be imported
    assert "no_such_module" in cause


def test_bug_report_names_every_plugin_that_fails(sick):
    block = sick["bug_report"]
    for name in (*CHANGES, *BROKEN, "ghost"):
        assert f"plugin {name}: " in block
    assert block.startswith("```text\n")
    assert block.endswith("\n```")
    assert f"torch {sick['torch']}" in block


def test_plugin_that_hangs(site, doctor):
    source = "import time\nprint('going to sleep')\ntime.sleep(600)\n"
    site.add_device("hanging", "hanging_plugin", {"hanging_plugin.py": source})
    document = doctor(site, "--timeout", "15", DEVHOST_DEVICE="none")
    ((severity, cause, _),) = document.about("plugin")
    assert severity == "error"
    assert "did not finish within 15 s, while importing hanging_plugin" in cause
    (finding,) = [f for f in document["findings"] if f["check"] == "plugin"]
    assert finding["seconds"] >= 15


def test_unavailable_plugin_is_no_error(site, doctor):
    site.add_package("minimal")
    document = doctor(site, MINIMAL_HIDE="1")
    ((severity, cause, _),) = document.about("plugin")
    assert severity == "warning"
    assert cause == (
        "minimal 1.0 is sound, but its device is not available here: MINIMAL_HIDE is set"
    )
    ((severity, cause, _),) = document.about("import")
    assert severity == "ok"
    assert "activates device 'minimal', which is not available: it is the only" in cause


def test_disabled_plugin_is_not_tried(site, doctor):
    site.add_package("minimal").add_device(
        "segfault", "segfault_plugin", {"segfault_plugin.py": BROKEN["segfault"]}
    )
    document = doctor(site, DEVHOST_DISABLE="segfault,segfolt")
    assert document.about("plugin", "segfault") == []
    assert document.about("configuration", "segfault") == [
        ("ok", "segfault 1.0 is not tried: DEVHOST_DISABLE=segfault,segfolt keeps it out", "")
    ]
    ((severity, cause, remedy),) = document.about("configuration", "DEVHOST_DISABLE")
    assert (severity, remedy) == ("warning", "Correct DEVHOST_DISABLE")
    assert cause.endswith("called 'segfolt'. Did you mean 'segfault'?")
    assert document.about("plugin", "minimal")[-1][1].startswith("minimal 1.0 works")
