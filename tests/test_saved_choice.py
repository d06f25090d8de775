"""The file in which `devhost use` saves a choice."""

import os
import stat
import sys

import pytest

from devhost import SelectionError, saved_choice


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path / "etc" / "devhost" / "device"


def test_none_is_the_normal_case(file):
    assert saved_choice.read() is None
    assert saved_choice.clear() is False


@pytest.mark.parametrize("folder", ["etc", "etc/devhost"])
def test_a_file_where_a_folder_belongs(file, tmp_path, folder):
    (tmp_path / folder).parent.mkdir(exist_ok=True)
    (tmp_path / folder).write_text("")
    assert saved_choice.read() is None
    assert saved_choice.clear() is False
    with pytest.raises(SelectionError, match=rf"cannot be saved in {file}: .*Error: "):
        saved_choice.save("npu")


def test_round_trip(file):
    saved_choice.save("npu")
    saved_choice.save("npu,devhost-openreg")
    assert saved_choice.read() == "npu,devhost-openreg"
    assert file.read_text() == "npu,devhost-openreg\n"
    assert [path.name for path in file.parent.iterdir()] == ["device"]
    assert saved_choice.clear() is True
    assert saved_choice.read() is None


def test_every_user_of_the_environment_can_read_it(file):
    mask = os.umask(0o022)
    try:
        saved_choice.save("npu")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


@pytest.mark.parametrize("content", [b"npu", b"npu\r\n", b"  npu \n\n"])
def test_what_an_editor_makes_of_it(file, content):
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    assert saved_choice.read() == "npu"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not one line with the name of a device plugin"),
        (b" \n", "is not one line"),
        (b"npu\nopenreg\n", "is not one line"),
        (b"npu\0", "is not one line"),
        (b"n" * 100_000, "is not one line"),
        (b"caf\xe9", "is not UTF-8 text: UnicodeDecodeError"),
    ],
)
def test_damage(file, content, problem):
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    assert_refused(file, problem)
    assert saved_choice.clear() is True
    assert saved_choice.read() is None


def assert_refused(file, problem):
    with pytest.raises(SelectionError) as caught:
        saved_choice.read()
    assert str(caught.value).startswith(f"the choice saved in {file} {problem}")
    assert str(caught.value).endswith("or remove the choice with `devhost use --clear`")


def test_a_folder(file):
    file.mkdir(parents=True)
    assert_refused(file, "is no regular file")


def test_a_named_pipe_is_not_waited_for(file):
    file.parent.mkdir(parents=True)
    os.mkfifo(file)
    assert_refused(file, "is no regular file")
    assert saved_choice.clear() is True


def test_a_link_to_nothing_is_no_choice(file):
    file.parent.mkdir(parents=True)
    file.symlink_to("nowhere")
    assert saved_choice.read() is None
    assert saved_choice.clear() is True


def test_what_may_not_be_read(file, monkeypatch):
    saved_choice.save("npu")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(file), "open", refuse)  # root, who runs CI, may read everything
    assert_refused(file, "cannot be read: PermissionError")


def test_what_cannot_be_written_or_removed_changes_nothing(file):
    (file / "full").mkdir(parents=True)
    with pytest.raises(SelectionError, match=f"the choice cannot be saved in {file}: .*Error: "):
        saved_choice.save("npu")
    with pytest.raises(SelectionError, match=f"{file} cannot be removed: .*Error: "):
        saved_choice.clear()
    assert [path.name for path in file.parent.iterdir()] == ["device"]
    assert [path.name for path in file.iterdir()] == ["full"]
