"""Compile the driver with its GoogleTest tests, plainly and under sanitizers, and run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[1]
DRIVER = PLUGIN / "csrc" / "driver"
SOURCES = [*sorted(DRIVER.glob("*.cpp")), *sorted((PLUGIN / "tests" / "driver").glob("*.cpp"))]
# -Og -g1: the sanitizers' reports name lines, at half the compile time of -O1 -g.
FLAGS = ["-std=c++20", "-Og", "-g1", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{DRIVER}"]
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


@pytest.mark.parametrize("sanitizers", ["", "address,undefined", "thread"])
def test_driver(sanitizers: str, compiler: str, tmp_path: Path) -> None:
    """All C++ tests pass, without a compiler warning and without a sanitizer's report."""
    program = tmp_path / "driver_tests"
    sanitize = [f"-fsanitize={sanitizers}", *SANITIZE] if sanitizers else []
    build = subprocess.run(
        [*compiler.split(), *FLAGS, *sanitize, *map(str, SOURCES), *LIBRARIES, "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
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
