"""``devhost_openreg._driver`` as Python sees it, each time in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

GIB = 2**30
VARIABLES = (
    "OPENREG_DEVICE_COUNT",
    "OPENREG_LAUNCH",
    "OPENREG_MEMORY",
    "OPENREG_VISIBLE_DEVICES",
)


def run(code: str, **variables: str) -> str:
    """Run code in a fresh interpreter with only these OPENREG_* variables; return its output."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "from devhost_openreg import _driver\n" + code],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def error_of(call: str, **variables: str) -> list[str]:
    """Return name, code and text of the DriverError that the call raises."""
    code = f"""
try:
    {call}
except _driver.DriverError as error:
    print(error.name, error.code, error, sep="\\n")
"""
    return run(code, **variables).splitlines()


def test_two_devices_by_default_without_torch() -> None:
    code = """
import sys
print(_driver.device_count(), "torch" in sys.modules)
"""
    assert run(code) == "2 False"


def test_device_properties() -> None:
    code = """
p = _driver.get_device_properties(1)
assert type(p) is _driver.DeviceProperties
assert p.driver_version == _driver.driver_version() == 1000
print(p.name, p.total_memory, type(p.multi_processor_count).__name__, sep="|")
print(p)
"""
    values, text = run(code).splitlines()
    assert values == f"OpenReg Simulated Accelerator|{8 * GIB}|int"
    processors = len(os.sched_getaffinity(0))
    assert text == (
        f"DeviceProperties(name='OpenReg Simulated Accelerator', total_memory={8 * GIB}, "
        f"multi_processor_count={processors}, driver_version=1000, ordinal=1)"
    )


def test_device_properties_are_read_only() -> None:
    code = """
p = _driver.get_device_properties(0)
for name in ("name", "total_memory", "multi_processor_count", "driver_version", "ordinal"):
    try:
        setattr(p, name, 1)
    except AttributeError:
        print(name)
"""
    fields = ["name", "total_memory", "multi_processor_count", "driver_version", "ordinal"]
    assert run(code).split() == fields


def test_environment() -> None:
    code = "print(_driver.device_count(), _driver.mem_get_info(4))"
    expected = f"5 ({3 * 2**20}, {3 * 2**20})"
    assert run(code, OPENREG_DEVICE_COUNT="5", OPENREG_MEMORY="3MiB") == expected


def test_properties_and_counts_do_not_reserve_memory() -> None:
    """Counting and describing devices reserves no windows: the address space does not grow."""
    code = """
def virtual_pages() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0])

before = virtual_pages()
_driver.device_count(), _driver.get_device_properties(0), _driver.driver_version()
queried = virtual_pages()
_driver.mem_get_info(0)
started = virtual_pages()
print((queried - before) * 4096 < 2**30, (started - before) * 4096 >= 2 * 2 * 8 * 2**30)
"""
    assert run(code) == "True True"


@pytest.mark.parametrize("call", ["get_device_properties", "mem_get_info"])
@pytest.mark.parametrize("index", [-1, 2, 1000])
def test_unknown_device(call: str, index: int) -> None:
    assert error_of(f"_driver.{call}({index})") == [
        "oregErrorInvalidDevice",
        "6",
        (
            f"oregErrorInvalidDevice: there is no device {index}: this process has 2, "
            "numbered from 0 (see OPENREG_DEVICE_COUNT and OPENREG_VISIBLE_DEVICES)"
        ),
    ]


@pytest.mark.parametrize(
    "call",
    ["device_count()", "get_device_properties(0)", "mem_get_info(0)"],
)
def test_invalid_environment(call: str) -> None:
    assert error_of(f"_driver.{call}", OPENREG_DEVICE_COUNT="many") == [
        "oregErrorInvalidConfiguration",
        "3",
        (
            "oregErrorInvalidConfiguration: OPENREG_DEVICE_COUNT='many' is not valid: "
            "give an integer from 1 to 64"
        ),
    ]
    name, _, text = error_of(f"_driver.{call}", OPENREG_MEMORY="8GB")
    assert name == "oregErrorInvalidConfiguration"
    assert "OPENREG_MEMORY='8GB'" in text
    assert "K, M, G, KiB, MiB or GiB" in text


def test_invalid_environment_can_be_corrected() -> None:
    code = """
import os
os.environ["OPENREG_DEVICE_COUNT"] = "0"
try:
    _driver.device_count()
except _driver.DriverError as error:
    print(error.name)
os.environ["OPENREG_DEVICE_COUNT"] = "3"
print(_driver.device_count())
"""
    assert run(code).split() == ["oregErrorInvalidConfiguration", "3"]


def test_more_address_space_than_there_is() -> None:
    name, _, text = error_of(
        "_driver.mem_get_info(0)", OPENREG_DEVICE_COUNT="64", OPENREG_MEMORY="16384GiB"
    )
    assert name == "oregErrorInitialization"
    assert "set OPENREG_MEMORY or OPENREG_DEVICE_COUNT lower" in text


def test_wrong_argument_types() -> None:
    code = """
for wrong in ("0", None, 1.5, 2**40):
    try:
        _driver.get_device_properties(wrong)
    except TypeError:
        print("TypeError")
"""
    assert run(code).split() == ["TypeError"] * 4


def test_driver_error_is_a_runtime_error_with_a_qualified_name() -> None:
    code = """
print(_driver.DriverError.__mro__[1].__name__, _driver.DriverError.__module__)
"""
    assert run(code) == "RuntimeError devhost_openreg._driver"


def test_forked_child() -> None:
    """After use, a forked child can count devices, is told to use spawn, and harms nothing."""
    code = """
import os
_driver.mem_get_info(0)
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    try:
        _driver.mem_get_info(0)
    except _driver.DriverError as error:
        os.write(writer, f"{_driver.device_count()} {error.name} {error}".encode())
    os._exit(0)
os.waitpid(child, 0)
print(os.read(reader, 1000).decode())
print(_driver.mem_get_info(0))
"""
    child, parent = run(code).splitlines()
    assert child.startswith("2 oregErrorForked oregErrorForked: ")
    assert "'spawn'" in child
    assert parent == str((8 * GIB, 8 * GIB))
