"""What the README says that the device cannot do: each is a clear error, and nothing crashes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"

# PyTorch warns of its own beta and deprecated parts.
QUIETLY = "import warnings\nwith warnings.catch_warnings(): warnings.simplefilter('ignore'); "

# By the words in bold with which an entry of the README's list begins.
LIMITS = {
    "One device": [
        ("torch.empty(1, device='ndarray:1')", "AcceleratorError: .*no ndarray:1, only ndarray:0"),
        ("torch.ndarray.set_device(1)", "AcceleratorError: .*there is 1 device"),
    ],
    "One stream": [
        ("torch.accelerator.synchronize()", "RuntimeError: Backend doesn't support synchronizing"),
        (
            "a, b = (torch.Event('ndarray', enable_timing=True) for _ in range(2))\n"
            "a.record(), b.record()\n"
            "a.elapsed_time(b)",
            "RuntimeError: Backend doesn't support elapsedTime",
        ),
        (
            "torch.Stream('ndarray').record_event().synchronize()",
            "RuntimeError: Backend doesn't support synchronizing events",
        ),
    ],
    "Generators": [
        ("torch.Generator(device='ndarray')", "NotImplementedError: .*getNewGenerator"),
        (
            "torch.rand(1, device='ndarray', generator=torch.Generator())",
            "RuntimeError: Expected a 'ndarray' device type for generator",
        ),
    ],
    "Pinned memory": [
        ("torch.ones(1).pin_memory()", "NotImplementedError: .*getPinnedMemoryAllocator"),
        ("torch.empty(1, device='ndarray', pin_memory=True)", "RuntimeError: Only dense CPU"),
        (
            "next(iter(torch.utils.data.DataLoader([1], pin_memory=True)))",
            "NotImplementedError: .*getPinnedMemoryAllocator",
        ),
    ],
    "Memory statistics": [
        (f"torch.ndarray.{function}()", "NotImplementedError: .*no memory statistics")
        for function in ("memory_allocated", "memory_stats", "mem_get_info", "empty_cache")
    ],
    "Storages": [
        ("torch.ones(1, device='ndarray').untyped_storage().resize_(9)", "NotImplementedError"),
    ],
    "Other layouts": [
        ("torch.eye(2, device='ndarray').to_sparse()", "NotImplementedError: .*Sparsendarray"),
        ("torch.eye(2).to_sparse().to('ndarray')", "NotImplementedError: .*Sparsendarray"),
        (
            QUIETLY + "repr(torch.eye(2, device='ndarray').to_sparse_csr())",
            "NotImplementedError: .*SparseCsrndarray",
        ),
        (
            QUIETLY + "torch.quantize_per_tensor(torch.ones(1).ndarray(), 1.0, 0, torch.qint8)",
            "NotImplementedError: .*Quantizedndarray",
        ),
        (
            QUIETLY + "torch.nested.nested_tensor([torch.ones(2)], device='ndarray').unbind()",
            "NotImplementedError: .*NestedTensorndarray",
        ),
        ("torch.ones(2, device='ndarray').to_mkldnn()", "NotImplementedError: .*ndarray"),
    ],
    "NumPy without a copy": [
        ("torch.ones(1, device='ndarray').numpy()", "TypeError: can't convert ndarray:0 .*cpu()"),
        (
            "import numpy; numpy.from_dlpack(torch.ones(1, device='ndarray'))",
            "RuntimeError: Unsupported device in DLTensor",
        ),
    ],
    "Other processes": [
        (
            "from multiprocessing.reduction import ForkingPickler\n"
            "ForkingPickler.dumps(torch.ones(1, device='ndarray'))",
            "RuntimeError: .*ndarray does not share memory between processes",
        ),
    ],
    "Inductor": [
        (
            QUIETLY + "torch.compile(lambda x: x + 1)(torch.ones(1, device='ndarray'))",
            "BackendCompilerFailed: (.|\n)*Inductor, generates no code for device 'ndarray'",
        ),
    ],
    "Collectives": [
        (
            "import torch.distributed; torch.distributed.get_default_backend_for_device('ndarray')",
            "ValueError: Default backend not registered for device : ndarray",
        ),
    ],
}


@pytest.mark.parametrize(
    ("code", "error"), [entry for entries in LIMITS.values() for entry in entries]
)
def test_a_limit_is_a_clear_error(device, raises, code, error):
    with raises(error):
        device(code)
    assert device("(torch.ones(2, device='ndarray') + 1).tolist()") == [2, 2]


def test_the_readme_lists_these_limits():
    section = README.read_text().partition("## Limits\n")[2].partition("\n## ")[0]
    assert re.findall(r"^- \*\*(.+?)\.?\*\*", section, re.MULTILINE) == list(LIMITS)


def test_a_tensor_that_outgrows_its_storage_leaves_its_views_behind(device):
    assert device(
        """
        x = torch.zeros(2, device="ndarray")
        view = x[:]
        x.resize_(3).fill_(1)
        [x.tolist(), view.tolist()]
        """
    ) == [[1, 1, 1], [0, 0]]


def test_every_stream_is_the_same(device):
    assert device(
        """
        stream = torch.Stream("ndarray")
        event = stream.record_event()
        torch.ones(1, device="ndarray").record_stream(stream)
        with stream:
            torch.ones(1, device="ndarray")
        torch.ndarray.synchronize()
        [stream == torch.Stream("ndarray"), stream.stream_id, event.query(), stream.query()]
        """
    ) == [True, 0, True, True]


def test_a_forked_child_may_use_the_device_but_not_its_parents_autograd(device):
    # Autograd's worker thread does not survive a fork. PyTorch says so on every accelerator.
    assert (
        device(
            """
        import os
        x = torch.ones(2, device="ndarray", requires_grad=True)
        (x * 2).sum().backward()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                (x * 2).sum().backward()
            except RuntimeError as error:
                works = (torch.ones(2, device="ndarray") + x.detach()).tolist() == [2, 2]
                status = 0 if "fork" in str(error) and works else 2
            os._exit(status)
        os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        """
        )
        == 0
    )
