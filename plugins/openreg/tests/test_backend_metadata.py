"""What a library keeps in a tensor's backend metadata is saved with the tensors of this device.

OpenReg keeps nothing there, and PyTorch has one place per process for the two functions that save
and restore it. OpenReg leaves that place to whoever needs it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from torch.utils import cpp_extension

SOURCE = Path(__file__).parent / "extensions" / "backend_metadata.cpp"

CODE = """
import copy, io, pickle
import torch
torch.ops.load_library(LIBRARY)
mark, is_marked = torch.ops.marks.mark, torch.ops.marks.is_marked
x, plain = torch.arange(3.0, device="openreg:1"), torch.ones(2, device="openreg")
mark(x)
there, host = {"map_location": "openreg:0"}, {"map_location": "cpu"}
for options in ({}, {"weights_only": False}, there, host):
    file = io.BytesIO()
    torch.save([x, plain], file)
    file.seek(0)
    y, other = torch.load(file, **options)
    print(y.device, is_marked(y), is_marked(other), y.tolist(), other.tolist())
for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), x.detach(), copy.deepcopy(plain)):
    print(y.device, is_marked(y), y.tolist())
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the library that marks tensors."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("backend metadata is C++ only: install g++, or set CXX")
    path = tmp_path_factory.mktemp("metadata") / "libmarks.so"
    command = [*compiler.split(), "-std=c++20", "-shared", "-fPIC", str(SOURCE), "-o", str(path)]
    command += [f"-I{folder}" for folder in cpp_extension.include_paths()]
    command += [f"-L{folder}" for folder in cpp_extension.library_paths()]
    build = subprocess.run(
        [*command, "-ltorch_cpu", "-lc10"], capture_output=True, text=True, check=False
    )
    assert build.returncode == 0, build.stderr
    return path


def test_metadata_is_saved_and_restored(fresh, library):
    process = fresh(f"LIBRARY = {str(library)!r}\n" + CODE)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines() == [
        "openreg:1 True False [0.0, 1.0, 2.0] [1.0, 1.0]",
        "openreg:1 True False [0.0, 1.0, 2.0] [1.0, 1.0]",
        "openreg:0 True False [0.0, 1.0, 2.0] [1.0, 1.0]",
        "cpu False False [0.0, 1.0, 2.0] [1.0, 1.0]",  # the metadata is the device's
        "openreg:1 True [0.0, 1.0, 2.0]",
        "openreg:1 True [0.0, 1.0, 2.0]",
        "openreg:1 True [0.0, 1.0, 2.0]",
        "openreg:0 False [1.0, 1.0]",
    ]
