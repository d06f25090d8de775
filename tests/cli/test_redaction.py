"""What goes into a bug report says nothing about the person who sends it."""

import getpass
import platform
import re
import sys

import pytest

from devhost.cli.redaction import redacted


@pytest.fixture
def alice(tmp_path, monkeypatch):
    """A home folder with an environment in it, and a project in which we are."""
    home = tmp_path / "alice"
    project = home / "secret project"
    project.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LOGNAME", "alice")
    monkeypatch.setattr(sys, "prefix", str(home / "venv"))
    monkeypatch.setattr(sys, "base_prefix", str(home / ".pyenv" / "3.11"))
    monkeypatch.setattr(platform, "node", lambda: "alices-laptop")
    monkeypatch.chdir(project)
    return home


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{home}/venv/lib/torch/__init__.py", "<prefix>/lib/torch/__init__.py"),
        ("{home}/.pyenv/3.11/lib/json.py", "<base>/lib/json.py"),
        ("/x/y/site-packages/acme/_C.so:", "<...>/site-packages/acme/_C.so:"),
        ("{home}/secret project/plugin.py:12", "<cwd>/plugin.py:12"),
        ("in {home}/data, {home}", "in ~/data, ~"),
        ("{home}_and_bob/data.bin", "<...>/data.bin"),
        ('File "/srv/acme/customers/x.py", line 3', 'File "<...>/x.py", line 3'),
        (
            "(/srv/acme/lib.so.1: undefined symbol: _ZN3c10)",
            "(<...>/lib.so.1: undefined symbol: _ZN3c10)",
        ),
        ("/usr/lib/libcuda.so.1 and /dev/acme0", "/usr/lib/libcuda.so.1 and /dev/acme0"),
        ("copy /srv/alice/ here", "copy <...>/<user> here"),
        ("alice's card on alices-laptop", "<user>'s card on <host>"),
        ("malice is no name", "malice is no name"),
        ("torch/nn and 1/2 and a / b", "torch/nn and 1/2 and a / b"),
        ("https://example.org/alice/x", "https://example.org/<user>/x"),
        ("Linux-6.1-x86_64-with-glibc2.36", "Linux-6.1-x86_64-with-glibc2.36"),
    ],
)
def test_placeholders(alice, text, expected):
    assert redacted(text.format(home=alice)) == expected


def test_link_to_the_home_folder(alice, tmp_path, monkeypatch):
    link = tmp_path / "elsewhere"
    link.symlink_to(alice)
    monkeypatch.setenv("HOME", str(link))
    assert redacted(f"{link}/a and {alice}/b") == "~/a and ~/b"


def test_without_folder_and_name(monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    def nobody():
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert redacted(f"in {gone.parent}") == f"in <...>/{tmp_path.name}"


def test_report_of_a_plugin_in_a_home_folder(site, tmp_path):
    """End to end: everything that names somebody is in what goes wrong."""
    home = tmp_path / "alice"
    project = home / "secret-project"
    project.mkdir(parents=True)
    site.root = home / "packages"
    site.add_device(
        "telling",
        "telling_plugin",
        {
            "telling_plugin.py": """
                import os, pathlib, sys
                raise OSError(f"{os.getcwd()} {pathlib.Path.home()} {sys.prefix} {__file__} alice")
            """
        },
    )
    site.cwd = lambda: project
    result = site.devhost("doctor", HOME=str(home), LOGNAME="alice", USER="alice")
    assert result.returncode == 1
    findings, _, block = result.stdout.partition("For a bug report, without personal paths:")
    assert str(project) in findings
    # Children find their own environment, for which the tests' interpreter has another name.
    assert re.search(r"OSError: <cwd> ~ <\S+ ~/packages/telling_plugin\.py <user>", block)
    for personal in (str(home), str(project), "alice", sys.prefix, str(tmp_path)):
        assert personal not in block
    # What is needed to help is still there.
    assert "telling 1.0, module telling_plugin in ~/packages" in block
    assert 'telling_plugin.py", line 3, in <module>' in block
