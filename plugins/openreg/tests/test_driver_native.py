"""Compile C++ with its GoogleTest tests, plainly and under sanitizers, and run them.

The driver is tested alone, and the cache of device memory on top of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from torch.utils import cpp_extension

PLUGIN = Path(__file__).parents[1]
CSRC = PLUGIN / "csrc"
DRIVER = sorted((CSRC / "driver").glob("*.cpp"))
DRIVER_TESTS = sorted((PLUGIN / "tests" / "driver").glob("*.cpp"))
# What the cache is made of. It needs PyTorch's smallest library, which no sanitizer sees into.
CACHE = [
    *(CSRC / "runtime" / f"{name}.cpp" for name in ("device_cache", "device", "stream", "error")),
    PLUGIN / "tests" / "runtime" / "device_cache_test.cpp",
]
C10 = [f"-I{CSRC}", "-Wno-unused-parameter", "-lc10"]
C10 += [f"-isystem{folder}" for folder in cpp_extension.include_paths()]
C10 += [f"-L{folder}" for folder in cpp_extension.library_paths()]
C10 += [f"-Wl,-rpath,{folder}" for folder in cpp_extension.library_paths()]
# -Og -g1: the sanitizers' reports name lines, at half the compile time of -O1 -g.
FLAGS = ["-std=c++20", "-Og", "-g1", "-Wall", "-Wextra", "-Werror", "-pthread"]
FLAGS += [f"-I{CSRC / 'driver'}"]
LIBRARIES = ["-lgtest_main", "-lgtest"]

# -fno-sanitize=enum: C callers can pass any number as an enum, and the driver has to refuse it.
SANITIZE = ["-fno-sanitize-recover=all", "-fno-sanitize=enum"]

# allocator_may_return_null: a test asks for more host memory than there is.
# die_after_fork: tests fork while workers run, as users do.
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "allocator_may_return_null=1:die_after_fork=0:halt_on_error=1",
}


@pytest.fixture(scope="module")
def compiler() -> str:
    """Return the C++ compiler; skip without GoogleTest, but never in CI."""
    command = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if command is None:
        pytest.skip("the driver's C++ tests need a C++20 compiler: install g++, or set CXX")
    found = subprocess.run(
        [*command.split(), "-E", "-x", "c++", "-"],
        input="#include <gtest/gtest.h>\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode != 0:
        sentence = (
            "the driver's C++ tests need GoogleTest: install the system package libgtest-dev "
            "(Debian, Ubuntu) or gtest-devel (Fedora)"
        )
        if os.environ.get("CI"):
            pytest.fail(sentence)
        pytest.skip(sentence)
    return command


def build_and_run(
    compiler: str, program: Path, sanitizers: str, sources: list[Path], *flags: str
) -> None:
    """All C++ tests pass, without a compiler warning and without a sanitizer's report."""
    command = [*compiler.split(), *FLAGS, *map(str, sources), "-o", str(program), *LIBRARIES]
    if sanitizers:
        command += [f"-fsanitize={sanitizers}", *SANITIZE]
    build = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    assert build.returncode == 0, build.stderr

    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENREG_")}
    run = subprocess.run(
        [str(program)],
        env=environment | SANITIZER_OPTIONS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "[  PASSED  ]" in run.stdout
    assert "SUMMARY: " not in run.stdout, run.stdout  # how every sanitizer's report ends


@pytest.mark.parametrize("sanitizers", ["", "address,undefined", "thread"])
def test_driver(sanitizers: str, compiler: str, tmp_path: Path) -> None:
    build_and_run(compiler, tmp_path / "driver_tests", sanitizers, [*DRIVER, *DRIVER_TESTS])


def test_cache_of_device_memory_under_concurrent_load(compiler: str, tmp_path: Path) -> None:
    build_and_run(compiler, tmp_path / "cache_tests", "thread", [*DRIVER, *CACHE], *C10)
