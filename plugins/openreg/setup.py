"""Builds libopenreg.so (the driver), _driver (its bindings) and _C (PyTorch on top of it)."""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import Extension, setup

# Importing torch would load an installed devhost, and with it the plugin that is to be replaced.
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import pybind11
import torch
from torch.utils import cpp_extension

CSRC = Path("csrc")
# Ninja runs in the build folder, so that include paths are absolute.
ROOT = str(CSRC.resolve())
DRIVER = str((CSRC / "driver").resolve())
PACKAGE = "devhost_openreg"
COMPILE_ARGS = ["-std=c++20", "-O2", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"]
BESIDE_ITSELF = ["-Wl,-rpath,$ORIGIN"]


def sources(*folders: str) -> list[str]:
    """Every C++ file in the folders of csrc."""
    return sorted(str(path) for folder in folders for path in (CSRC / folder).glob("*.cpp"))


def kineto_headers() -> list[str]:
    """Where the headers of PyTorch's profiler are: they include each other without a folder."""
    return [str(Path(path) / "kineto") for path in cpp_extension.include_paths()[:1]]


class BuildExtension(cpp_extension.BuildExtension):
    """Gives the driver a library's name and lets the other two find it."""

    def get_ext_filename(self, ext_name: str) -> str:
        """Name the driver libopenreg.so, without Python's ABI tag."""
        if ext_name.endswith("libopenreg"):
            return str(Path(*ext_name.split("."))) + ".so"
        return super().get_ext_filename(ext_name)

    def build_extensions(self) -> None:
        """Build in the order of ext_modules, with the driver first."""
        folder = str(Path(self.get_ext_fullpath(f"{PACKAGE}.libopenreg")).parent.resolve())
        for extension in self.extensions[1:]:
            extension.library_dirs.append(folder)
        super().build_extensions()


driver = Extension(
    f"{PACKAGE}.libopenreg",
    sources("driver"),
    include_dirs=[DRIVER],
    extra_compile_args=COMPILE_ARGS,
    # The driver's worker threads outlive every module that uses it: it is never unloaded.
    extra_link_args=["-pthread", "-Wl,-z,nodelete"],
    language="c++",
)
driver_bindings = Extension(
    f"{PACKAGE}._driver",
    [str(CSRC / "bindings" / "driver.cpp")],
    include_dirs=[ROOT, DRIVER, pybind11.get_include()],
    libraries=["openreg"],
    extra_compile_args=COMPILE_ARGS,
    extra_link_args=BESIDE_ITSELF,
    language="c++",
)
device = cpp_extension.CppExtension(
    f"{PACKAGE}._C",
    [str(CSRC / "bindings" / "module.cpp"), *sources("runtime", "kernels")],
    include_dirs=[ROOT, DRIVER, *kineto_headers()],
    libraries=["openreg"],
    extra_compile_args=[*COMPILE_ARGS, "-Wno-unused-parameter"],
    extra_link_args=BESIDE_ITSELF,
)

# The plugin tells devhost which torch it was compiled against: PyTorch's C++ ABI changes with every
# minor version.
(Path(PACKAGE) / "_build.py").write_text(f'BUILT_FOR_TORCH = "{torch.__version__.split("+")[0]}"\n')

setup(
    ext_modules=[driver, driver_bindings, device],
    cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=False)},
)
