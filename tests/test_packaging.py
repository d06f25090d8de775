"""What pip does to an environment: the wheels in dist/, in fresh environments, without a network.

`make test` builds the wheels first. Each environment is a virtual one of its own, which sees all
that is installed here except devhost, its plugins and extensions.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
EXAMPLE = ROOT / "examples" / "plugin"
PURE_PLUGINS = [
    file.parent.name
    for file in sorted(ROOT.glob("plugins/*/pyproject.toml"))
    if not (file.parent / "setup.py").exists()
]
DISTRIBUTIONS = ["devhost", "devhost-openreg", *(f"devhost-{name}" for name in PURE_PLUGINS)]


def wheel_of(distribution):
    """The wheel in dist/."""
    found = list(DIST.glob(f"{distribution.replace('-', '_')}-*.whl"))
    if not found:
        message = f"no wheel of {distribution} in dist/: run `make wheels`"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    return found[0]


def run(*command, cwd, **variables):
    """Run a command in the environment of somebody who has configured nothing."""
    ours = ("DEVHOST_", "OPENREG_", "TORCH_", "PIP_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [str(part) for part in command],
        env={**kept, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


class Environment:
    """A virtual environment."""

    def __init__(self, root, bare):
        self.root = root
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
        self.executable = root / "bin" / "python"
        (site_packages,) = root.glob("lib/python*/site-packages")
        (site_packages / "bare.pth").write_text(f"{bare}\n")
        self.site_packages = site_packages

    def pip(self, *arguments):
        """Run pip in this environment."""
        done = run(self.executable, "-m", "pip", *arguments, cwd=self.root)
        assert done.returncode == 0, done.stdout + done.stderr

    def install(self, *what):
        """Install from dist/ or from a file or folder, without looking for what it depends on."""
        self.pip(
            "install", "--quiet", "--no-deps", "--no-build-isolation", "--find-links", DIST, *what
        )
        return self

    def python(self, code, **variables):
        """Run code."""
        return run(self.executable, "-c", code, cwd=self.root, **variables)

    def plugins(self, **variables):
        """What `devhost list` says of the plugins, by name."""
        done = run(self.root / "bin" / "devhost", "list", "--json", cwd=self.root, **variables)
        assert done.returncode == 0, done.stderr
        return {row["name"]: row for row in json.loads(done.stdout)["plugins"]}


@pytest.fixture(scope="session")
def bare(base, tmp_path_factory):
    """What is installed here, without a trace of devhost."""
    folder = tmp_path_factory.mktemp("bare")
    for entry in base.iterdir():
        if "devhost" not in entry.name:
            (folder / entry.name).symlink_to(entry.resolve())
    return folder


@pytest.fixture
def environment(bare, tmp_path):
    """A fresh environment with the host in it."""
    wheel_of("devhost")
    return Environment(tmp_path / "venv", bare).install("devhost")


@pytest.fixture
def example(tmp_path):
    """A copy of the example plugin, so that building leaves the source alone."""
    copy = tmp_path / "example"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "__py*"))
    return copy


USE = "import torch; print(torch.tensor([2.0], device='{}').cpu().item())"


def printed(process):
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return process.stdout.strip()


def test_all_wheels_install_side_by_side_and_each_works(bare, tmp_path):
    for distribution in DISTRIBUTIONS:
        wheel_of(distribution)
    environment = Environment(tmp_path / "venv", bare).install(*DISTRIBUTIONS)
    rows = environment.plugins()
    assert {row["distribution"] for row in rows.values()} == set(DISTRIBUTIONS) - {"devhost"}
    for name, row in rows.items():
        assert row["status"] == "available", row["reason"]
        assert row["location"] == str(environment.site_packages)
        assert printed(environment.python(USE.format(name), DEVHOST_DEVICE=name)) == "2.0"
    check = run(environment.executable, "-m", "pip", "check", cwd=tmp_path)
    complaints = check.stdout.splitlines()
    assert [line for line in complaints if "devhost" in line] == []


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_wheel_holds_its_package_and_nothing_else(distribution):
    with zipfile.ZipFile(wheel_of(distribution)) as wheel:
        names = wheel.namelist()
    package = distribution.replace("-", "_")
    assert {name.split("/")[0].partition("-")[0] for name in names} == {package}
    assert not [name for name in names if "test" in name or name.endswith((".cpp", ".h"))]
    if distribution == "devhost":
        assert {"devhost/py.typed", "devhost/cli/list.schema.json"} <= set(names)


def test_uninstalling_a_plugin_leaves_nothing_behind(environment, example):
    environment.install(example)
    assert printed(environment.python(USE.format("acme"))) == "2.0"
    environment.pip("uninstall", "--yes", "acme-device")
    code = "import torch, devhost; print(devhost.status().device, devhost.status().plugins)"
    assert printed(environment.python(code)) == "None ()"
    assert environment.plugins() == {}


def test_uninstalling_the_host_leaves_torch_as_it_was(environment, example):
    environment.install(example)
    environment.pip("uninstall", "--yes", "devhost")
    code = (
        "import torch; print(torch.ones(2).sum().item(), torch._C._get_privateuse1_backend_name())"
    )
    assert printed(environment.python(code)) == "2.0 privateuseone"


def newer_host(tmp_path, spec_version):
    """A wheel of devhost 99.0 with that version of the hook specs."""
    source = tmp_path / f"host-{spec_version}"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "devhost", source / "devhost")
    for file, old, new in (
        ("pyproject.toml", 'version = "0.1.0"', 'version = "99.0"'),
        ("devhost/__init__.py", '__version__ = "0.1.0"', '__version__ = "99.0"'),
        (
            "devhost/hookspecs.py",
            "SPEC_VERSION: Final = 1",
            f"SPEC_VERSION: Final = {spec_version}",
        ),
    ):
        text = (source / file).read_text()
        assert text.count(old) == 1
        (source / file).write_text(text.replace(old, new))
    done = run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", tmp_path, source),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    return tmp_path / "devhost-99.0-py3-none-any.whl"


def test_plugin_under_a_newer_host(environment, example, tmp_path):
    environment.install(example)
    environment.install("--upgrade", newer_host(tmp_path, spec_version=1))
    code = "import devhost; print(devhost.__version__)\n" + USE.format("acme")
    assert printed(environment.python(code)).split() == ["99.0", "2.0"]


def test_plugin_for_hooks_that_a_newer_host_no_longer_has(environment, example, tmp_path):
    environment.install(example)
    environment.install("--upgrade", newer_host(tmp_path, spec_version=2))
    sentence = (
        "it was written for version 1 of the hook specs and this devhost has version 2: update "
        "the plugin"
    )
    result = environment.python("import torch; print(torch.ones(2).sum().item())")
    assert (result.returncode, result.stdout) == (0, "2.0\n")
    (line,) = result.stderr.splitlines()
    assert line.startswith("devhost: device plugin 'acme' (acme-device 1.0, ")
    assert sentence in line
    assert environment.plugins()["acme"]["reason"] == sentence


def test_editable_plugin(environment, example):
    environment.install("--editable", example)
    row = environment.plugins()["acme"]
    assert (row["status"], row["distribution"], row["version"]) == (
        "available",
        "acme-device",
        "1.0",
    )
    source = example / "acme_device" / "plugin.py"
    edited = source.read_text().replace("return 0\n", "return 0  # edited\n")
    source.write_text(edited + "\nprint('edited')\n")
    assert printed(environment.python(USE.format("acme"))).split() == ["edited", "2.0"]


def test_target_directory_on_the_path(bare, tmp_path):
    target = tmp_path / "target"
    wheels = [wheel_of("devhost"), wheel_of("devhost-openreg")]
    done = run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target),
        *wheels,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    environment = Environment(tmp_path / "venv", bare)
    path = {"PYTHONPATH": str(target)}
    assert printed(environment.python(USE.format("openreg"), **path)) == "2.0"
    code = "import sys; from devhost.cli import main; sys.exit(main(['list', '--json']))"
    (row,) = json.loads(printed(environment.python(code, **path)))["plugins"]
    assert (row["status"], row["location"]) == ("available", str(target))
    # Without the folder there is no trace of it.
    assert "privateuseone" in printed(
        environment.python("import torch; print(torch._C._get_privateuse1_backend_name())")
    )


def test_host_and_plugin_in_zip_files(bare, tmp_path, example):
    # A wheel is a zip file with the package and its metadata at the top.
    done = run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--wheel-dir", tmp_path, example),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    plugin = tmp_path / "acme_device-1.0-py3-none-any.whl"
    path = {"PYTHONPATH": os.pathsep.join(map(str, (wheel_of("devhost"), plugin)))}
    environment = Environment(tmp_path / "venv", bare)
    code = "import devhost; print(devhost.__file__)\n" + USE.format("acme")
    where, value = printed(environment.python(code, **path)).splitlines()
    assert where == str(wheel_of("devhost") / "devhost" / "__init__.py")
    assert value == "2.0"
    code = "import sys; from devhost.cli import main; sys.exit(main(['list', '--json']))"
    (row,) = json.loads(printed(environment.python(code, **path)))["plugins"]
    assert (row["status"], row["location"]) == ("available", str(plugin))
    code = """
import json
from importlib.resources import files
print(json.loads(files("devhost.cli").joinpath("list.schema.json").read_text())["title"])
"""
    assert printed(environment.python(code, **path)) == "devhost list --json"


ABI = (
    "its native part was built for torch {built}, and this is torch {found}: the C++ ABI differs "
    "between minor versions, so install the build for this torch, or the torch it was built for"
)


def test_compiled_wheel_refuses_another_torch(environment):
    wheel_of("devhost-openreg")
    environment.install("devhost-openreg")
    code = """
import sys, torch, devhost
built = torch.__version__.split("+")[0]
torch.__version__ = type(torch.__version__)("2.99.1")
devhost.load()
(plugin,) = devhost.status().plugins
print(built)
print(plugin.state, torch._C._get_privateuse1_backend_name())
print([name for name in sys.modules if name.startswith("devhost_openreg.")])
print("devhost_openreg/_C" in open("/proc/self/maps").read())
"""
    result = environment.python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    built, *lines = result.stdout.splitlines()
    assert lines == [
        "failed privateuseone",
        "['devhost_openreg._build', 'devhost_openreg.plugin']",
        "False",
    ]
    (line,) = result.stderr.splitlines()
    assert line.startswith("devhost: device plugin 'openreg' (devhost-openreg 0.1.0, ")
    assert ABI.format(built=built, found="2.99.1") in line

    # The command sees the version that is installed, not imported.
    fake = environment.root / "fake" / "torch-2.99.1.dist-info"
    fake.mkdir(parents=True)
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.99.1\n")
    row = environment.plugins(PYTHONPATH=str(fake.parent))["openreg"]
    assert (row["status"], row["reason"]) == ("failed", ABI.format(built=built, found="2.99.1"))
