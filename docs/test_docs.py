"""The documentation says what the code does: examples run, and the reference is complete."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pluggy
import pytest

import devhost
from devhost import hookspecs
from devhost.types import required_members

DOCS = Path(__file__).parent
ROOT = DOCS.parent
BLOCK = re.compile(r"^```(?:python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")))
    if BLOCK.search(page.read_text())
]
HOOKS = {
    name: function
    for name, function in vars(hookspecs).items()
    if name.startswith("devhost_") and inspect.isfunction(function)
}


def run(*arguments: object) -> str:
    """Run a fresh interpreter, away from the source tree, and return what it printed."""
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=DOCS, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_of_a_page_runs(page):
    # Counted apart from the runner, so that a block it does not recognise cannot go unnoticed. In a
    # block with prompts, each prompt is an example.
    blocks = BLOCK.findall(page.read_text())
    count = sum(max(1, block.count(">>> ")) for block in blocks)
    assert run(DOCS / "run_examples.py", page).split()[-1] == str(count)


def test_pages_with_examples_were_found():
    assert {"README", "quickstart", "configuration", "plugins"} <= {page.stem for page in PAGES}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the documentation as plain text."""
    folder = tmp_path_factory.mktemp("text")
    run("-m", "sphinx", "--fail-on-warning", "--quiet", "-b", "text", DOCS, folder)
    return folder


@pytest.mark.parametrize("name", HOOKS)
def test_reference_has_the_exact_signature_of_every_hook(built, name):
    reference = " ".join((built / "hooks.txt").read_text().split())
    signature = str(inspect.signature(HOOKS[name])).replace("'", "")  # annotations are strings
    assert f"devhost.hookspecs.{name}{signature}" in reference


def test_reference_has_every_public_name(built):
    reference = (built / "api.txt").read_text()
    names = set(devhost.__all__) - {"__version__"}
    assert {name for name in names if not re.search(rf"devhost\.{name}\b", reference)} == set()


@pytest.mark.parametrize("name", HOOKS)
def test_example_in_a_docstring_implements_the_hook(name):
    example = inspect.getdoc(HOOKS[name]).partition("Example::\n")[2]
    namespace = {"__name__": "example"}
    exec(textwrap.dedent(example), namespace)

    manager = pluggy.PluginManager(hookspecs.PROJECT_NAME)
    manager.add_hookspecs(hookspecs)
    manager.register(SimpleNamespace(**{name: namespace[name]}))  # refuses a wrong signature
    assert len(getattr(manager.hook, name).get_hookimpls()) == 1

    signature = inspect.signature(HOOKS[name])
    result_type = getattr(devhost, signature.return_annotation, None)
    if signature.parameters or result_type is None:
        return
    result = namespace[name]()
    if getattr(result_type, "_is_protocol", False):
        missing = [m for m in required_members(result_type) if not hasattr(result, m)]
        assert missing == []
    else:
        assert isinstance(result, result_type)


def test_configuration_lists_exactly_the_variables_that_are_read():
    pattern = re.compile(r"\"((?:DEVHOST|OPENREG)_[A-Z_]+|TORCH_DEVICE_BACKEND_AUTOLOAD)\"")
    sources = [*(ROOT / "devhost").rglob("*.py"), *(ROOT / "plugins/openreg/csrc").rglob("*.cpp")]
    read = {name for source in sources for name in pattern.findall(source.read_text())}
    documented = set(re.findall(r"^## `([A-Z_]+)`$", (DOCS / "configuration.md").read_text(), re.M))
    # Read by torch itself; devhost only obeys.
    assert documented - {"TORCH_DEVICE_BACKEND_AUTOLOAD"} == read - {
        "TORCH_DEVICE_BACKEND_AUTOLOAD"
    }


def test_no_page_names_a_file_that_is_not_there():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")):
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
