"""Extensions: what they can do, and that a device comes up without one that fails."""

import pytest

SITE_CHOICE = """
from devhost import hookimpl

@hookimpl
def devhost_select(candidates):
    print("asked for", [(c.name, c.distribution, c.version) for c in candidates])
    return {choice}

@hookimpl
def devhost_activated(status):
    print("activated", status.device, [str(p.state) for p in status.plugins])
"""

SHOW = "import torch, devhost; print(devhost.status().choice); print(devhost.status().device)"


def add_extension(site, source, name="choice"):
    return site.add(
        f"{name}-ext", f"[devhost.extensions]\n{name} = {name}_ext\n", {f"{name}_ext.py": source}
    )


def test_site_chooses_and_observes(site):
    site.add_package("sound").add_package("minimal")
    add_extension(site, SITE_CHOICE.format(choice="'sound'"))
    result = site.python(SHOW)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "asked for [('faulty', 'sound', '1.0'), ('minimal', 'minimal', '1.0')]",
        "activated faulty ['activated', 'not selected']",
        "the site's devhost_select chose 'sound'",
        "faulty",
    ]
    listed = site.devhost("list")
    assert "activates device 'faulty': the site's devhost_select chose 'sound'" in listed.stdout


def test_variable_overrules_the_site(site):
    site.add_package("sound").add_package("minimal")
    add_extension(site, SITE_CHOICE.format(choice="'sound'"))
    result = site.python(SHOW, DEVHOST_DEVICE="minimal")
    assert result.stdout.splitlines() == [
        "activated minimal ['not selected', 'activated']",
        "DEVHOST_DEVICE=minimal",
        "minimal",
    ]


def test_site_that_names_what_is_not_there(site):
    site.add_package("minimal")
    add_extension(site, SITE_CHOICE.format(choice="'minimall'"))
    result = site.python(SHOW)
    assert result.stdout.splitlines()[-1] == "None"
    assert "devhost_select chose 'minimall': no device plugin 'minimall'" in result.stderr
    assert "Did you mean 'minimal'?" in result.stderr


def test_faulty_extensions_are_reported_and_skipped(site):
    site.add_package("minimal")
    add_extension(site, "raise SystemExit('gone')", "exits")
    add_extension(site, "def devhost_selct(candidates): pass", "misspelled")
    add_extension(site, "", "empty")
    add_extension(
        site,
        """
        from devhost import hookimpl

        @hookimpl
        def devhost_activated(status):
            raise ZeroDivisionError("while observing")
        """,
        "raises",
    )
    result = site.python(
        """
        import torch, devhost
        for e in devhost.status().extensions:
            print(e.name, e.state)
        print(devhost.status().device, torch.ones(1, device="minimal").cpu().item())
        """
    )
    assert result.stdout.splitlines() == [
        "empty failed",
        "exits failed",
        "misspelled failed",
        "raises failed",
        "minimal 1.0",
    ]
    log = result.stderr.splitlines()
    assert len(log) == 4
    assert "it implements no hook" in log[0]
    assert "SystemExit: gone" in log[1]
    assert "devhost_selct() is no hook of devhost, did you mean devhost_select?" in log[2]
    for name, line in zip(("empty", "exits", "misspelled", "raises"), log, strict=True):
        assert line.startswith(
            f"devhost: extension '{name}' ({name}-ext 1.0, module {name}_ext in "
        )
    assert "failed in devhost_activated(): ZeroDivisionError: while observing" in log[3]


def test_select_that_raises_activates_nothing(site):
    site.add_package("minimal")
    add_extension(
        site,
        """
        from devhost import hookimpl

        @hookimpl
        def devhost_select(candidates):
            raise LookupError("no table")
        """,
    )
    result = site.python(SHOW)
    assert result.stdout.splitlines()[-1] == "None"
    (line,) = result.stderr.splitlines()
    assert line.startswith("devhost: extension 'choice' (choice-ext 1.0, module choice_ext in ")
    assert "failed in devhost_select(): LookupError: no table" in line


def test_extension_may_wrap_a_hook_of_the_device(site):
    site.add_package("minimal")
    add_extension(
        site,
        """
        import dataclasses
        from devhost import hookimpl

        @hookimpl(wrapper=True)
        def devhost_probe():
            result = yield
            return dataclasses.replace(result, available=False, reason="closed on Sundays")
        """,
    )
    result = site.python(
        "import torch, devhost; print(torch.minimal.is_available());"
        "print(devhost.status().plugins[0].reason)"
    )
    assert result.stdout.splitlines() == ["False", "closed on Sundays"]


WRAPPER = """
import dataclasses
from devhost import hookimpl

@hookimpl(wrapper=True)
def {hook}({arguments}):
    {before}
    result = yield
    {after}
    return result

@hookimpl
def devhost_activated(status):
    print("not skipped")
"""
# Hook, what the wrapper does before and after it -> what the one line in the log says.
FAILING_WRAPPERS = {
    "before": ("devhost_probe", "raise OSError('no file')", "", "OSError: no file"),
    "after": ("devhost_probe", "", "raise OSError('no file')", "OSError: no file"),
    "exits": ("devhost_probe", "raise SystemExit(3)", "", "SystemExit: 3"),
    "forgets": (
        "devhost_probe",
        "",
        "return",
        "devhost_probe() returned NoneType, expected devhost.ProbeResult",
    ),
    "ends early": ("devhost_probe", "return", "", "it ends before its `yield`"),
    "yields twice": ("devhost_probe", "", "yield", "RuntimeError: it has a second `yield`"),
    "renames": (
        "devhost_device",
        "",
        "result = dataclasses.replace(result, name='other')",
        "DeviceInfo.name is 'other' but the entry point is named 'minimal'",
    ),
    "kernels": ("devhost_kernels", "", "1 / 0", "ZeroDivisionError: division by zero"),
    "runtime": ("devhost_runtime", "", "result = 3", "has no function device_count()"),
    "random": ("devhost_rng", "1 / 0", "", "ZeroDivisionError: division by zero"),
    "autocast": ("devhost_amp", "", "result = []", "devhost_amp() returned list"),
}


@pytest.mark.parametrize("case", FAILING_WRAPPERS)
def test_a_failing_wrapper_is_reported_and_passed_over(site, case):
    hook, before, after, words = FAILING_WRAPPERS[case]
    arguments = "registry" if hook == "devhost_kernels" else ""
    source = WRAPPER.format(
        hook=hook, arguments=arguments, before=before or "pass", after=after or "pass"
    )
    site.add_package("minimal")
    add_extension(site, source, "wraps")
    result = site.python(
        """
        import torch, devhost
        status = devhost.status()
        (extension,), (plugin,) = status.extensions, status.plugins
        print(extension.state, plugin.state, torch.ones(1, device="minimal").cpu().item())
        print(extension.reason)
        """
    )
    outcome, reason = result.stdout.splitlines()
    assert outcome == "failed activated 1.0"
    (line,) = result.stderr.splitlines()
    assert line == f"devhost: {reason}"
    assert line.startswith("devhost: extension 'wraps' (wraps-ext 1.0, module wraps_ext in ")
    assert f"failed in {hook}(): " in line
    assert words in line
    assert line.endswith("The device does without it. Update or uninstall wraps-ext")


def test_a_plugin_that_fails_inside_a_wrapper_is_the_plugins_fault(site):
    site.add_package("minimal")
    path = site.root / "minimal_plugin.py"
    path.write_text(path.read_text().replace("return Runtime()", "raise OSError('no driver')"))
    add_extension(
        site,
        """
        from devhost import hookimpl

        @hookimpl(wrapper=True)
        def devhost_runtime():
            try:
                return (yield)
            finally:
                print("saw it")
        """,
    )
    result = site.python(
        "import torch, devhost; status = devhost.status();"
        "print(status.plugins[0].state, status.extensions[0].state)"
    )
    assert result.stdout.splitlines() == ["saw it", "failed activated"]
    (line,) = result.stderr.splitlines()
    assert line.startswith("devhost: device plugin 'minimal' (minimal 1.0, ")
    assert "failed while calling devhost_runtime(): OSError: no driver" in line


def test_a_wrapper_that_fails_on_the_plugins_failure_hides_nothing(site):
    site.add_package("minimal")
    path = site.root / "minimal_plugin.py"
    path.write_text(path.read_text().replace("return Runtime()", "raise OSError('no driver')"))
    add_extension(
        site,
        """
        from devhost import hookimpl

        @hookimpl(wrapper=True)
        def devhost_runtime():
            try:
                return (yield)
            except OSError as error:
                raise LookupError("what now?") from error
        """,
    )
    log = site.python("import torch").stderr.splitlines()
    assert len(log) == 2
    assert "extension 'choice'" in log[0]
    assert "LookupError: what now?" in log[0]
    assert "device plugin 'minimal'" in log[1]
    assert "OSError: no driver" in log[1]


def test_interrupting_a_wrapper_interrupts_the_import(site):
    site.add_package("minimal")
    add_extension(
        site,
        """
        from devhost import hookimpl

        @hookimpl(wrapper=True)
        def devhost_probe():
            raise KeyboardInterrupt
            yield
        """,
    )
    result = site.python("import torch")
    assert "KeyboardInterrupt" in result.stderr
    assert result.returncode != 0


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("@hookimpl(hookwrapper=True)\ndef devhost_probe():\n    yield", "use wrapper=True"),
        ("@hookimpl(wrapper=True)\ndef devhost_probe():\n    return", "has no `yield`"),
    ],
)
def test_a_wrapper_that_is_none_is_refused(site, source, words):
    site.add_package("minimal")
    add_extension(site, f"from devhost import hookimpl\n{source}\n")
    result = site.python("import torch, devhost; print(devhost.status().device)")
    assert result.stdout == "minimal\n"
    (line,) = result.stderr.splitlines()
    assert "extension 'choice'" in line
    assert words in line


def test_one_extension_that_fails_leaves_the_others_and_the_plugin(site):
    site.add_package("minimal")
    path = site.root / "minimal_plugin.py"
    observer = "\n@hookimpl\ndef devhost_activated(status):\n    print('the plugin')\n"
    path.write_text(path.read_text() + observer)
    for name, body in {
        "first": "print('first')",
        "second": "1 / 0",
        "third": "print('third')",
    }.items():
        source = (
            f"from devhost import hookimpl\n@hookimpl\ndef devhost_activated(status):\n    {body}\n"
        )
        add_extension(site, source, name)
    result = site.python("import torch")
    assert sorted(result.stdout.splitlines()) == ["first", "the plugin", "third"]
    (line,) = result.stderr.splitlines()
    assert "extension 'second'" in line


def test_plugin_that_fails_to_observe_stays_active(site):
    site.add_package("minimal")
    path = site.root / "minimal_plugin.py"
    path.write_text(path.read_text() + "\n@hookimpl\ndef devhost_activated(status):\n    1 / 0\n")
    code = "import torch, devhost; print(devhost.status().plugins[0].state)"
    result = site.python(code)
    assert result.stdout == "activated\n"
    (line,) = result.stderr.splitlines()
    assert "devhost_activated() failed after 'minimal'" in line
    assert "had become active, which it stays: ZeroDivisionError" in line

    # Also where it is raised: the device is active all the same.
    code = (
        "import os; os.environ['TORCH_DEVICE_BACKEND_AUTOLOAD'] = '0'\n"
        "import devhost\ntry:\n    devhost.load()\nexcept devhost.DevhostError as error:\n"
        "    print(devhost.status().plugins[0].state, type(error.__cause__).__name__)"
    )
    assert site.python(code, DEVHOST_STRICT="1").stdout == "activated ZeroDivisionError\n"


def test_strict_raises_what_an_extension_does(site):
    site.add_package("minimal")
    add_extension(
        site, WRAPPER.format(hook="devhost_probe", arguments="", before="1 / 0", after="")
    )
    result = site.python("import torch", DEVHOST_STRICT="1")
    assert result.returncode == 1
    assert "PluginError: extension 'choice'" in result.stderr
    assert "ZeroDivisionError: division by zero" in result.stderr


def test_list_shows_what_a_wrapper_makes_of_the_plugin(site):
    site.add_package("minimal")
    add_extension(
        site,
        """
        import dataclasses
        from devhost import hookimpl

        @hookimpl(wrapper=True)
        def devhost_probe():
            result = yield
            return dataclasses.replace(result, available=False, reason="closed on Sundays")
        """,
    )
    assert "minimal: closed on Sundays" in site.devhost("list").stdout.splitlines()


def test_list_names_extensions_that_fail(site):
    site.add_package("minimal").add_package("sound")
    add_extension(site, "raise SystemExit('gone')", "exits")
    add_extension(site, "", "empty")
    add_extension(
        site, WRAPPER.format(hook="devhost_probe", arguments="", before="1 / 0", after=""), "wraps"
    )
    result = site.devhost("list")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert sum("│ available" in line for line in lines) == 2
    reports = [line for line in lines if line.startswith("extension ")]
    assert len(reports) == 3  # once each, not once for each plugin
    assert "extension 'empty' (empty-ext 1.0, " in reports[0]
    assert "it implements no hook" in reports[0]
    assert "failed while importing exits_ext: SystemExit: gone" in reports[1]
    assert "failed in devhost_probe(): ZeroDivisionError: division by zero" in reports[2]


def test_list_bounds_an_extension_that_hangs(site):
    site.add_package("minimal")
    add_extension(site, "import time\ntime.sleep(600)")
    result = site.devhost("list", "--timeout", "1")
    reason = "did not finish within 1 s, while loading extension 'choice'"
    assert f"minimal: {reason}" in result.stdout
    assert f"activates no device: asking the extensions {reason}" in result.stdout


def test_device_plugin_cannot_wrap(site):
    site.add_package("minimal")
    path = site.root / "minimal_plugin.py"
    wrapper = "@hookimpl(wrapper=True)\ndef devhost_activated(status):\n    return (yield)\n"
    path.write_text(f"{path.read_text()}\n{wrapper}")
    result = site.python("import torch, devhost; print(devhost.status().plugins[0].state)")
    assert result.stdout == "failed\n"
    assert "devhost_activated() is a wrapper; wrapping a hook is for extensions" in result.stderr
