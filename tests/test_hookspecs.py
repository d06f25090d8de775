"""Every hook is typed, documented, and has an example that works."""

import inspect
import textwrap
from types import SimpleNamespace

import pytest

from devhost import checks, hookspecs
from devhost.manager import Hooks

HOOKS = checks.hook_names()


def example(hook):
    """Return the code of a hook's example."""
    _, _, code = getattr(hookspecs, hook).__doc__.partition("Example::\n")
    return textwrap.dedent(code)


def test_the_hooks_of_the_contract():
    assert HOOKS == [
        "devhost_device",
        "devhost_probe",
        "devhost_kernels",
        "devhost_runtime",
        "devhost_rng",
        "devhost_amp",
        "devhost_select",
        "devhost_activated",
    ]
    assert set(hookspecs.REQUIRED_HOOKS) | set(hookspecs.EXTENSION_HOOKS) <= set(HOOKS)


@pytest.mark.parametrize("hook", HOOKS)
def test_is_typed_and_documented(hook):
    spec = getattr(hookspecs, hook)
    signature = inspect.signature(spec)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty
        assert f"{parameter.name}:" in spec.__doc__
    if signature.return_annotation != "None":
        assert "Returns:" in spec.__doc__
    assert example(hook)


@pytest.mark.parametrize("hook", HOOKS)
def test_example_implements_the_hook(hook):
    names = {}
    # torch is replaced: what the examples use of it does not matter here.
    code = example(hook).replace("import torch\n", "")
    names["torch"] = SimpleNamespace(Generator=object, bfloat16="bfloat16", float16="float16")
    exec(compile(code, f"<example of {hook}>", "exec"), names)
    plugin = SimpleNamespace(**{name: v for name, v in names.items() if name == hook})
    hooks = Hooks()
    problems = list(checks.hook_problems(plugin, hooks.manager, device=False))
    assert problems == []


def test_examples_together_are_a_plugin(site):
    code = "\n".join(
        example(h).replace("example", "exemplary") for h in HOOKS if h != "devhost_select"
    )
    site.add_device("exemplary", "exemplary_hooks", {"exemplary_hooks.py": code})
    result = site.python(
        """
        import torch
        print(torch.exemplary.device_count(), torch.exemplary.get_device_name(1))
        print(torch.exemplary.get_amp_supported_dtype(), torch.get_autocast_dtype("exemplary"))
        torch.manual_seed(5)
        print(torch.exemplary.initial_seed())
        """
    )
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "device exemplary is ready",
        "2 Example 9000",
        "[torch.bfloat16, torch.float16] torch.bfloat16",
        "5",
    ]
