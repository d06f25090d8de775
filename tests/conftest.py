"""Throw-away environments with plugins in them, and fresh interpreters that run there.

Every test about importing runs in an interpreter of its own, because `import torch` happens once
per process and the slot that plugins compete for cannot be given back. An environment shows the
interpreter all installed distributions except device plugins and extensions, so that the tests
mean the same whether OpenReg is installed or not. It also has a `sys.prefix` of its own, so that
what `devhost use` has saved for the real one does not count, and is left alone.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
import venv
from pathlib import Path

import pytest

import devhost
from devhost.discovery import DEVICE_GROUP, EXTENSION_GROUP

# A shell starts what runs in the background with SIGINT ignored, and so would be the interpreters.
signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = Path(__file__).parent
PACKAGES = HERE / "packages"
TIMEOUT = 120


def pytest_addoption(parser):
    parser.addoption(
        "--write-messages",
        action="store_true",
        help="write the messages of test_faults.py down for the documentation",
    )


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """A folder with links to everything that is installed, but no device plugin or extension."""
    root = tmp_path_factory.mktemp("base")
    try:
        importlib.metadata.distribution("devhost")
    except importlib.metadata.PackageNotFoundError:
        pytest.exit("devhost is not installed: pip install --no-deps -e .", returncode=4)
    hidden = {"devhost"}  # linked below, wherever it is imported from
    for group in (DEVICE_GROUP, EXTENSION_GROUP):
        for entry_point in importlib.metadata.entry_points(group=group):
            hidden |= {Path(file).parts[0] for file in entry_point.dist.files or ()}
    stdlib = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    for folder in map(Path, sys.path):
        if not folder.is_dir() or str(folder) in stdlib or folder.name == "lib-dynload":
            continue
        if not any(folder.glob("*.dist-info")):
            continue
        for entry in folder.iterdir():
            if entry.name not in hidden and not (root / entry.name).exists():
                (root / entry.name).symlink_to(entry)
    (root / "devhost").symlink_to(Path(devhost.__file__).parent)
    return root


class Site:
    """A folder of throw-away distributions, first on the path of the interpreters it starts."""

    def __init__(self, root, base):
        self.root = root
        self.base = base
        self.environment = root.with_name(f"{root.name}-environment")
        self.choice_file = self.environment / "etc" / "devhost" / "device"

    def add(self, name, entry_points, files=None, *, version="1.0", metadata=None):
        """Add a distribution; ``files`` maps names of modules to their source."""
        info = self.root / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        if metadata is None:
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
        (info / "METADATA").write_bytes(metadata)
        if isinstance(entry_points, str):
            entry_points = textwrap.dedent(entry_points).encode()
        (info / "entry_points.txt").write_bytes(entry_points)
        for file, source in (files or {}).items():
            path = self.root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(source), encoding="utf-8")
        return self

    def add_device(self, device, value, files=None, *, distribution=None):
        """Add a distribution with one device plugin."""
        return self.add(distribution or device, f"[devhost.devices]\n{device} = {value}\n", files)

    def add_marked(self, device, marks="", info=""):
        """Add a sound device; HIDDEN=a,b takes the hardware of the devices a and b away.

        Args:
            marks: Those of its entry point in the group devhost.ranking.
            info: Further arguments of its DeviceInfo.
        """
        ranking = f"[devhost.ranking]\n{device} = {marks}\n" if marks else ""
        source = f"""
            import os
            from devhost import DeviceInfo, ProbeResult, hookimpl
            from sound_hooks import devhost_kernels, devhost_runtime

            @hookimpl
            def devhost_device():
                return DeviceInfo(name="{device}", description="Sound", {info})

            @hookimpl
            def devhost_probe():
                hidden = "{device}" in os.environ.get("HIDDEN", "").split(",")
                return ProbeResult(available=not hidden, reason="hidden", devices=("Sound",))
        """
        shutil.copy(PACKAGES / "sound" / "sound_hooks.py", self.cwd())
        return self.add(
            f"{device}-dist",
            f"[devhost.devices]\n{device} = {device}_hooks\n{ranking}",
            {f"{device}_hooks.py": source},
        )

    def save_choice(self, text):
        """Save a choice as `devhost use` does, or one that it would not save."""
        self.choice_file.parent.mkdir(parents=True, exist_ok=True)
        self.choice_file.write_bytes(text.encode() if isinstance(text, str) else text)

    def add_package(self, package):
        """Add the distribution that lies in tests/packages."""
        folder = PACKAGES / package
        self.add(package, (folder / "entry_points.txt").read_text())
        for file in folder.glob("*.py"):
            shutil.copy(file, self.root)
        return self

    def environ(self, variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEVHOST_", "TORCH_"))}
        path = os.pathsep.join(map(str, (self.root, self.base)))
        return {**kept, "PYTHONPATH": path, "PYTHONSAFEPATH": "1", **variables}

    def cwd(self):
        # Not where pytest runs: Python 3.10 would find the source tree's devhost there.
        self.root.mkdir(exist_ok=True)
        return self.root

    def command(self, *arguments):
        # An empty environment: the real site-packages, with the device plugins in it, stays out.
        interpreter = self.environment / "bin" / "python"
        if not interpreter.exists():
            venv.EnvBuilder(symlinks=True).create(self.environment)
        return [str(interpreter), *arguments]

    def run(self, variables, *arguments, timeout=TIMEOUT):
        """Run an interpreter with these arguments to its end."""
        return subprocess.run(
            self.command(*arguments),
            env=self.environ(variables),
            cwd=self.cwd(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def python(self, code, *options, **variables):
        """Run ``code`` in a fresh interpreter."""
        return self.run(variables, *options, "-c", textwrap.dedent(code))

    def devhost(self, *arguments, timeout=TIMEOUT, **variables):
        """Run the command `devhost`."""
        return self.run(variables, "-m", "devhost", *arguments, timeout=timeout)

    def interpreter(self, *options, **variables):
        """Start an interpreter that runs one piece of code after the other."""
        return Interpreter(
            self.command("-W", "error", *options, str(HERE / "interpreter.py")),
            self.environ(variables),
            self.cwd(),
        )


class Interpreter:
    """A fresh interpreter shared by the tests of one module: calling it runs code."""

    def __init__(self, command, environ, cwd):
        self._process = subprocess.Popen(
            command,
            env=environ,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, code):
        """Run code and return the value of its last line; what it raises is raised as Raised."""
        watchdog = threading.Timer(TIMEOUT, self._process.kill)
        watchdog.start()
        self._process.stdin.write(json.dumps(textwrap.dedent(code)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        watchdog.cancel()
        assert line, f"the interpreter ended with status {self._process.wait()}"
        answer = json.loads(line)
        if "error" in answer:
            raise Raised(answer["error"], answer["message"])
        return answer["value"]

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(TIMEOUT)


class Raised(Exception):  # noqa: N818 - it is what code in the other interpreter raised
    """An exception in another interpreter, as ``Type: message``."""

    def __init__(self, kind, message):
        self.kind = kind
        super().__init__(f"{kind}: {message}")


@pytest.fixture
def raises():
    """``with raises("ValueError: .* ordinal")``: an exception of the other interpreter."""
    return lambda pattern: pytest.raises(Raised, match=f"^{pattern}")


@pytest.fixture
def site(tmp_path, base):
    """An environment without plugins."""
    return Site(tmp_path / "site", base)


@pytest.fixture(scope="module")
def module_site(tmp_path_factory, base):
    """The same, for all tests of a module."""
    return Site(tmp_path_factory.mktemp("site"), base)


@pytest.fixture(scope="module")
def minimal(module_site):
    """An interpreter with torch imported and the minimal device active."""
    module_site.add_package("minimal")
    with module_site.interpreter() as interpreter:
        interpreter("import torch, devhost; m = torch.minimal")
        yield interpreter
