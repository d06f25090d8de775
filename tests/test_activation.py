"""`import torch` with plugins installed, as a user sees it."""

import pytest

USE = "torch.ones(2, device='minimal').cpu().sum().item()"

SECOND = {
    "second_hooks.py": """
        from devhost import DeviceInfo, hookimpl
        from sound_hooks import devhost_kernels, devhost_probe, devhost_runtime

        @hookimpl
        def devhost_device():
            return DeviceInfo(name="second", description="The second device")
    """
}


@pytest.mark.parametrize(
    "imports",
    [
        "torch",
        "minimal_plugin, torch",
        "devhost.device_module.random, torch",  # a part of devhost that does
    ],
)
def test_every_import_order_gives_the_same_device(site, imports):
    site.add_package("minimal")
    result = site.python(f"import {imports}; print({USE}, torch.minimal.runtime.starts)", "-Werror")
    assert (result.stdout, result.stderr) == ("2.0 1\n", "")


def test_every_public_name_may_be_imported_first(site):
    site.add_package("minimal")
    result = site.python(f"from devhost import *; import torch; print({USE})")
    assert (result.stdout, result.stderr) == ("2.0\n", "")


def test_hook_module_that_imports_torch_is_explained(site):
    site.add_package("sound")
    site.add_device(
        "circular",
        "circular_hooks",
        {
            "circular_hooks.py": """
                import torch
                from devhost import DeviceInfo, hookimpl
                from sound_hooks import devhost_kernels, devhost_probe, devhost_runtime

                @hookimpl
                def devhost_device():
                    return DeviceInfo(name="circular", description="Imports torch at its top")
            """
        },
    )
    variables = {"DEVHOST_DEVICE": "circular"}
    first = site.python("import torch, circular_hooks; print(torch.circular)", **variables)
    assert (first.stdout, first.stderr) == ("<module 'torch.circular'>\n", "")
    result = site.python(
        "import circular_hooks, devhost; print(devhost.status().device);"
        "devhost.load(); print(devhost.status().device)",
        **variables,
    )
    assert result.stdout.split() == ["None", "circular"]
    assert "is still being imported: circular_hooks imports torch" in result.stderr
    assert "or call devhost.load() once it is imported" in result.stderr


def test_autoload_off_leaves_no_trace_and_load_does_it_by_hand(site):
    site.add_package("minimal")
    with site.interpreter(TORCH_DEVICE_BACKEND_AUTOLOAD="0") as run:
        run("import sys, torch")
        assert run("[m for m in sys.modules if m.split('.')[0] in ('devhost', 'pluggy')]") == []
        assert run("[m for m in sys.modules if m.startswith('minimal')]") == []
        assert run("torch._C._get_privateuse1_backend_name()") == "privateuseone"

        run("import devhost")
        assert run("[p.state.value for p in devhost.status().plugins]") == ["discovered"]
        assert run("devhost.status().ran") is False
        run("devhost.load(); module = torch.minimal; devhost.load()")
        assert run("torch.minimal is module")
        assert run(USE) == 2.0
        assert run("devhost.status().device") == "minimal"
        assert run("str(devhost.status().plugins[0].state)") == "activated"


def test_load_imports_torch_and_finds_its_work_done(site):
    site.add_package("minimal")
    result = site.python(f"import devhost; devhost.load(); import torch; print({USE})")
    assert (result.stdout, result.stderr) == ("2.0\n", "")


def test_threads_that_load_at_once_get_one_device(site):
    site.add_package("minimal")
    result = site.python(
        f"""
        import threading, devhost
        start = threading.Barrier(8)
        failed = []
        def load():
            start.wait()
            try:
                devhost.load()
                import torch
                assert {USE} == 2.0
            except BaseException as error:
                failed.append(error)
        threads = [threading.Thread(target=load) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        import torch
        print(failed, torch.minimal.runtime.starts)
        """
    )
    assert (result.stdout, result.stderr) == ("[] 1\n", "")


def test_plugin_that_calls_load_while_it_is_activated(site):
    site.add_package("sound").add_device(
        "eager",
        "eager_hooks",
        {
            "eager_hooks.py": """
                import devhost
                from devhost import DeviceInfo, hookimpl
                from sound_hooks import devhost_kernels, devhost_probe, devhost_runtime

                devhost.load()

                @hookimpl
                def devhost_device():
                    devhost.load()
                    return DeviceInfo(name="eager", description="Cannot wait")
            """
        },
    )
    result = site.python("import torch; print(torch.eager.device_count())", DEVHOST_DEVICE="eager")
    assert (result.stdout, result.stderr) == ("1\n", "")


def test_registered_names(minimal):
    assert minimal("import importlib; importlib.import_module('torch.minimal') is torch.minimal")
    assert minimal("torch.get_device_module('minimal') is torch.minimal")
    assert minimal("torch.get_device_module(torch.device('minimal:1')) is torch.minimal")
    assert minimal("torch.accelerator.current_accelerator().type") == "minimal"
    assert minimal("torch.ones(2).minimal().is_minimal and not torch.ones(2).is_minimal")
    assert minimal("[hasattr(c, 'minimal') for c in (torch.nn.Module, torch.UntypedStorage)]") == [
        True,
        True,
    ]
    assert minimal("torch.profiler.ProfilerActivity.MINIMAL.name") == "MINIMAL"


def test_no_plugin_imports_nothing(site):
    result = site.python(
        """
        import sys, torch
        print(sorted(m for m in sys.modules
                     if m.split(".")[0] in ("devhost", "pluggy", "rich", "importlib_metadata")))
        import devhost
        print(devhost.status().device, devhost.status().slot, devhost.status().plugins)
        """
    )
    assert result.stdout.splitlines() == [
        "['devhost', 'devhost.autoload', 'devhost.discovery', 'devhost.errors']",
        "None privateuseone ()",
    ]
    assert result.stderr == ""


def test_a_plugin_costs_only_what_it_uses(site):
    site.add_package("minimal")
    result = site.python(
        "import sys, torch; print([m for m in sys.modules if m.split('.')[0] in"
        " ('rich', 'importlib_metadata') or m.startswith('devhost.cli')"
        " or m == 'devhost.records'])"
    )
    assert result.stdout == "[]\n"


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("collects", [False, True])
def test_garbage_is_collected_afterwards_if_it_was_before(site, collects, fails):
    site.add_package("minimal")
    before = f"import gc; gc.{'enable' if collects else 'disable'}()"
    variables = {"DEVHOST_DEVICE": "absent"} if fails else {}
    result = site.python(f"{before}; import torch; print(gc.isenabled())", **variables)
    assert result.stdout == f"{collects}\n"
    if fails:
        code = f"{before}\ntry:\n    import torch\nexcept Exception:\n    print(gc.isenabled())"
        result = site.python(code, DEVHOST_STRICT="1", **variables)
        assert result.stdout == f"{collects}\n"


@pytest.mark.parametrize("name", ["aaa_patch", "zzz_patch"])
def test_foreign_entry_in_torch_backends_changes_nothing(site, name):
    site.add_package("minimal").add(
        name,
        f"[torch.backends]\n{name} = {name}_module:go\n",
        {f"{name}_module.py": "def go():\n    import torch\n    torch.patched = True\n"},
    )
    result = site.python(f"import torch; print({USE}, torch.patched)")
    assert (result.stdout, result.stderr) == ("2.0 True\n", "")


def test_stands_back_from_a_slot_that_is_taken(site):
    site.add_package("minimal").add(
        "foreign",
        # Before devhost in any order of entry points: it is imported by the test itself.
        "[console_scripts]\n",
        {
            "foreign.py": """
                import torch, types
                torch.utils.rename_privateuse1_backend("foreign")
                class Backend:
                    device_count = staticmethod(lambda: 1)
                torch._register_device_module("foreign", Backend())
            """
        },
    )
    with site.interpreter(TORCH_DEVICE_BACKEND_AUTOLOAD="0") as run:
        run("import torch, foreign, logging, devhost; log = []")
        run("logging.getLogger('devhost').addFilter(lambda r: log.append(r.getMessage()))")
        run("devhost.load()")
        (line,) = run("log")
        assert f"module minimal_plugin in {site.root}) stays inactive" in line
        assert "it is taken by 'foreign' (" in line
        assert "foreign.py)" in line
        assert run("devhost.status().slot") == "foreign"
        assert run("devhost.status().device") is None
        assert run("import sys; 'minimal_plugin' in sys.modules") is False


def test_strict_raises(site):
    site.add_device("ghost", "ghost_module")
    result = site.python("import torch", DEVHOST_STRICT="1")
    assert result.returncode == 1
    assert "devhost.errors.PluginError: device plugin 'ghost' (ghost 1.0, module" in result.stderr
    assert "ModuleNotFoundError: No module named 'ghost_module'" in result.stderr
    relaxed = site.python("import torch; print('alive')", DEVHOST_STRICT="yes")
    assert relaxed.stdout == "alive\n"
    assert "DEVHOST_STRICT=yes is ignored: it must be 0 or 1" in relaxed.stderr


def test_failure_is_one_line_on_stderr_even_if_warnings_are_errors(site):
    site.add_device("ghost", "ghost_module")
    result = site.python("import torch; print('alive')", "-Werror")
    assert result.stdout == "alive\n"
    (line,) = result.stderr.splitlines()
    assert line.startswith("devhost: device plugin 'ghost' (ghost 1.0, module ghost_module in ")


def test_plugin_that_warns_fails_alone_if_warnings_are_errors(site):
    site.add_package("sound").add_device(
        "noisy",
        "noisy_hooks",
        {
            "noisy_hooks.py": """
                import warnings
                from devhost import DeviceInfo, hookimpl
                from sound_hooks import devhost_kernels, devhost_probe, devhost_runtime

                warnings.warn("noise", stacklevel=2)

                @hookimpl
                def devhost_device():
                    return DeviceInfo(name="noisy", description="Warns")
            """
        },
    )
    strict = site.python("import torch; print('alive')", "-Werror", DEVHOST_DEVICE="noisy")
    assert strict.stdout == "alive\n"
    assert "UserWarning: noise" in strict.stderr
    plain = site.python("import torch; print(torch.noisy.device_count())", DEVHOST_DEVICE="noisy")
    assert plain.stdout == "1\n"


def test_keyboard_interrupt_belongs_to_the_user(site):
    site.add_device("slow", "slow_module", {"slow_module.py": "raise KeyboardInterrupt"})
    result = site.python("import torch")
    assert "KeyboardInterrupt" in result.stderr
    assert result.returncode != 0


def test_log_goes_where_the_program_sends_it(site):
    site.add_device("ghost", "ghost_module")
    result = site.python(
        """
        import logging, sys
        logging.basicConfig(stream=sys.stdout, format="%(name)s %(levelname)s")
        import torch
        """
    )
    assert (result.stdout, result.stderr) == ("devhost ERROR\n", "")


@pytest.fixture(scope="module")
def three_plugins(tmp_path_factory, base, module_site):
    """Three plugins: "faulty" of sound and "second" of two, which are equal, and "minimal"."""
    three = type(module_site)(tmp_path_factory.mktemp("three"), base)
    three.add_package("sound").add_package("minimal")
    return three.add_device("second", "second_hooks", SECOND, distribution="two")


ATTEMPT = """
    import logging, os, sys, torch, devhost
    HOOK_MODULES = {"minimal_plugin", "second_hooks", "sound_hooks"}
    log = []
    logging.getLogger("devhost").addFilter(lambda record: log.append(record.getMessage()))

    def attempt(**variables):
        log.clear()
        os.environ.pop("DEVHOST_DEVICE", None)
        os.environ.update(variables)
        devhost.load()
        status = devhost.status()
        return {
            "device": status.device,
            "choice": status.choice,
            "slot": status.slot,
            "states": {p.name: str(p.state) for p in status.plugins},
            "imported": sorted(HOOK_MODULES & set(sys.modules)),
            "log": list(log),
        }
"""


def test_choosing_among_several(three_plugins):
    # While nothing is activated the slot stays free, and one interpreter can go on.
    with three_plugins.interpreter(TORCH_DEVICE_BACKEND_AUTOLOAD="0") as run:
        run(ATTEMPT)

        undecided = run("attempt()")
        assert undecided["device"] is None
        assert undecided["imported"] == []
        assert set(undecided["states"].values()) == {"not selected"}
        (line,) = undecided["log"]
        assert "no device is active: 3 device plugins are installed and none comes first" in line
        assert "faulty (sound), second (two) are equal" in line
        assert "Set DEVHOST_DEVICE to one of them, or save a choice with `devhost use NAME`" in line

        off = run("attempt(DEVHOST_DEVICE='none')")
        assert (off["device"], off["log"]) == (None, [])
        assert set(off["states"].values()) == {"disabled"}

        unknown = run("attempt(DEVHOST_DEVICE='minimall')")
        assert unknown["device"] is None
        assert unknown["slot"] == "privateuseone"
        (line,) = unknown["log"]
        assert "no device plugin 'minimall' is installed" in line
        assert "installed: faulty (sound), minimal (minimal), second (two)" in line
        assert "Did you mean 'minimal'?" in line

        # A list takes the first that is available.
        chosen = run("attempt(DEVHOST_DEVICE='absent, minimal, TWO', MINIMAL_HIDE='1')")
        assert chosen["device"] == chosen["slot"] == "second"
        assert chosen["choice"] == "DEVHOST_DEVICE=absent, minimal, TWO; not installed: absent"
        assert chosen["states"] == {
            "faulty": "not selected",
            "minimal": "unavailable",
            "second": "activated",
        }
        assert chosen["log"] == []


def test_only_the_chosen_plugin_is_imported(three_plugins):
    with three_plugins.interpreter(TORCH_DEVICE_BACKEND_AUTOLOAD="0") as run:
        run(ATTEMPT)
        chosen = run("attempt(DEVHOST_DEVICE='minimal')")
        assert chosen["device"] == "minimal"
        assert chosen["choice"] == "DEVHOST_DEVICE=minimal"
        assert chosen["imported"] == ["minimal_plugin"]
        assert chosen["log"] == []


def test_list_passes_over_a_plugin_that_fails(three_plugins):
    with three_plugins.interpreter(TORCH_DEVICE_BACKEND_AUTOLOAD="0") as run:
        run(ATTEMPT)
        run("sys.modules['second_hooks'] = None")  # as if its module were gone
        chosen = run("attempt(DEVHOST_DEVICE='second,minimal')")
        assert chosen["device"] == "minimal"
        assert chosen["states"]["second"] == "failed"
        (line,) = chosen["log"]
        assert "'second' (two 1.0, module second_hooks in " in line


def test_device_that_is_not_there_is_explained_where_it_is_used(three_plugins, raises):
    with three_plugins.interpreter(TORCH_DEVICE_BACKEND_AUTOLOAD="0") as run:
        run(ATTEMPT)
        run("attempt(DEVHOST_DEVICE='none')")
        with raises(
            "AttributeError: module 'torch' has no attribute 'second': its plugin"
        ) as caught:
            run("torch.second.synchronize()")
        assert str(caught.value).endswith(
            "is installed, but disabled: DEVHOST_DEVICE=none switches device plugins off"
        )
        # It stays an attribute that is not there, and other names are none of its business.
        assert run("[hasattr(torch, 'second'), getattr(torch, 'second', 7)]") == [False, 7]
        with raises("AttributeError: module 'torch' has no attribute 'third'$"):
            run("torch.third")
        # torch.compile looks up deprecated attributes, and ignores PyTorch's warnings about them.
        add = "lambda x: x + torch.arange(1, 2)"
        assert run(f"torch.compile({add}, backend='eager')(torch.ones(1)).item()") == 2.0
        with raises("UserWarning: 'has_mps' is deprecated, please use 'torch.backends.mps"):
            run("torch.has_mps")

        run("sys.modules['second_hooks'] = None")  # as if its module were gone
        run("attempt(DEVHOST_DEVICE='second')")
        with raises("AttributeError: .* but failed: device plugin 'second' .* ModuleNotFoundError"):
            run("torch.second")

        # An attempt that succeeds is as if there had been none before.
        run("del sys.modules['second_hooks']; attempt(DEVHOST_DEVICE='second')")
        assert run("torch.second.device_count()") == 1


def test_unknown_name_is_explained_where_nothing_is_installed(site):
    result = site.python("import torch; print('alive')", DEVHOST_DEVICE="openreg")
    assert result.stdout == "alive\n"
    assert "no device plugin 'openreg' is installed; installed: none" in result.stderr
