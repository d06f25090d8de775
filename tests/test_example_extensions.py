"""The example extensions, installed by pip as a user would, beside the minimal device."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXTENSIONS = Path(__file__).parent.parent / "examples" / "extensions"
USE = "import torch; print(torch.ones(1, device='minimal').cpu().item())"


def install(site, name, tmp_path):
    """Install a copy of an example into the site, so that building leaves the source alone."""
    source = tmp_path / name
    source.mkdir()
    for file in (EXTENSIONS / name).iterdir():
        if file.is_file():
            (source / file.name).write_bytes(file.read_bytes())
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-build-isolation", "--target", str(site.root), str(source)]
    subprocess.run(command, check=True, timeout=300)


@pytest.fixture
def minimal_site(site):
    """An environment with the minimal device."""
    return site.add_package("minimal")


def test_activation_log(minimal_site, tmp_path):
    install(minimal_site, "activation_log", tmp_path)
    log = tmp_path / "devices.log"
    for variables in ({}, {"MINIMAL_HIDE": "1"}):
        result = minimal_site.python("import torch", ACME_ACTIVATION_LOG=str(log), **variables)
        assert result.stderr == ""
    there, hidden = map(json.loads, log.read_text().splitlines())
    assert (there["device"], there["plugin"], there["version"]) == ("minimal", "minimal", "1.0")
    assert (there["state"], there["reason"]) == (
        "activated",
        "it is the only device plugin installed",
    )
    steps = list(there["milliseconds"])
    assert steps[:4] == ["discover", "import", "check", "probe"]
    assert steps[-1] == "register"
    assert min(there["milliseconds"].values()) >= 0
    assert (hidden["state"], hidden["reason"]) == ("unavailable", "MINIMAL_HIDE is set")
    assert there["pid"] != hidden["pid"]


def test_activation_log_without_a_file_does_nothing(minimal_site, tmp_path):
    install(minimal_site, "activation_log", tmp_path)
    result = minimal_site.python(USE)
    assert (result.stdout, result.stderr) == ("1.0\n", "")


def test_activation_log_that_cannot_be_written_is_reported(minimal_site, tmp_path):
    install(minimal_site, "activation_log", tmp_path)
    result = minimal_site.python(USE, ACME_ACTIVATION_LOG=str(tmp_path / "no" / "such.log"))
    assert result.stdout == "1.0\n"
    (line,) = result.stderr.splitlines()
    assert line.startswith("devhost: extension 'activation_log' (acme-activation-log 1.0, ")
    assert "failed in devhost_activated(): FileNotFoundError" in line


def test_reservations(minimal_site, tmp_path):
    install(minimal_site, "reservations", tmp_path)
    file = tmp_path / "reserved.txt"
    file.write_text("other: not this one\n\nminimal : firmware update: until noon\n")
    result = minimal_site.python(USE, ACME_RESERVATIONS=str(file))
    assert result.stderr.endswith("not available: reserved: firmware update: until noon\n")
    listed = minimal_site.devhost("list", ACME_RESERVATIONS=str(file))
    assert "minimal: reserved: firmware update: until noon" in listed.stdout.splitlines()

    file.write_text("other: not this one\n")
    assert minimal_site.python(USE, ACME_RESERVATIONS=str(file)).stdout == "1.0\n"
    assert minimal_site.python(USE).stdout == "1.0\n"


def test_reservations_that_cannot_be_read_reserve_nothing(minimal_site, tmp_path):
    install(minimal_site, "reservations", tmp_path)
    result = minimal_site.python(USE, ACME_RESERVATIONS=str(tmp_path))
    assert result.stdout == "1.0\n"
    (line,) = result.stderr.splitlines()
    assert "extension 'reservations' (acme-reservations 1.0, module acme_reservations" in line
    assert "failed in devhost_probe(): IsADirectoryError" in line
