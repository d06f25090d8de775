"""`import devhost` is cheap, and offers what its documentation says."""

import ast
from pathlib import Path

import pytest

import devhost


def test_import_imports_nothing_else(site):
    result = site.python(
        """
        import sys
        before = set(sys.modules)
        import devhost
        print(sorted(m for m in set(sys.modules) - before if m.startswith("devhost")))
        heavy = {"torch", "pluggy", "importlib.metadata", "importlib_metadata", "rich"}
        print(heavy & set(sys.modules))
        """
    )
    assert result.stdout.splitlines() == ["['devhost']", "set()"]


def test_every_public_name_is_found_and_documented():
    assert set(devhost.__all__) <= set(dir(devhost))
    for name in devhost.__all__:
        value = getattr(devhost, name)
        if name not in ("__version__", "hookimpl"):
            assert value.__doc__, name


def test_names_for_type_checkers_are_the_public_names():
    tree = ast.parse(Path(devhost.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    imported = {alias.name for node in imports for alias in node.names}
    assert imported == set(devhost.__all__) - {"__version__"}


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'devhost' has no attribute 'laod'"):
        devhost.laod  # noqa: B018
