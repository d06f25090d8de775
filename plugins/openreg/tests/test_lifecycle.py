"""From the first use of the device to the end of the process, in fresh interpreters."""

import pytest


def printed(process):
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return process.stdout.split()


# ---- The first use ----


def test_importing_and_asking_start_nothing(fresh):
    code = """
import torch
m = torch.openreg
m.is_available(), m.device_count(), m.current_device(), m._is_in_bad_fork()
m.memory_allocated(), m.memory_stats(), m.empty_cache(), m.is_current_stream_capturing()
torch.manual_seed(1), torch.rand(2).is_pinned()
torch.accelerator.is_available(), torch.accelerator.device_count()
import threading
print(m.is_initialized(), m._initialized, threading.active_count())
from devhost_openreg import _C
print(_C.is_initialized())
"""
    assert printed(fresh(code)) == ["False", "False", "1", "False"]


# What needs an operator that is registered no earlier than the device is used: layouts, autocast,
# operators that PyTorch would compose.
FIRST_OPERATORS = {
    "sparse": "torch.sparse_coo_tensor([[1]], [5.0], (3,), device='openreg').to_dense()",
    "sparse_empty": "torch.empty(3, layout=torch.sparse_coo, device='openreg').to_dense() "
    "+ torch.tensor([0, 5.0, 0]).openreg()",
    "csr": "torch.sparse_csr_tensor([0, 1], [1], [5.0], (1, 3), device='openreg').to_dense()[0]",
    "nested": "torch.nested.nested_tensor([[0.0, 5, 0]], device='openreg')[0]",
    "quantized": "torch.quantize_per_tensor(torch.tensor([0, 5.0, 0]).openreg(), 1, 0, "
    "torch.qint8).dequantize()",
    "unpickled": "torch.load(io.BytesIO(SAVED), map_location='openreg').to_dense()",
    "composed": "torch.special.xlogy(torch.tensor([0, 5.0, 0], device='openreg'), math.e).round()",
    "autocast": "with torch.autocast('openreg'):\n    r = torch.ones(3, 1, device='openreg') @ "
    "torch.ones(1, 1, device='openreg')\n"
    "r = r.float()[:, 0] * torch.tensor([0, 5.0, 0]).openreg() "
    "if r.dtype == torch.float16 else None",
}


@pytest.mark.parametrize("first", FIRST_OPERATORS)
def test_whatever_operator_is_first(fresh, first):
    code = FIRST_OPERATORS[first]
    code = code if "\n" in code else f"r = {code}"
    process = fresh(f"""
import io, math, torch, warnings
warnings.simplefilter("ignore")  # sparse CSR and nested tensors are announced as beta by PyTorch
buffer = io.BytesIO(); torch.save(torch.tensor([0, 5.0, 0]).to_sparse(), buffer)
SAVED = buffer.getvalue()
{code}
print(*r.cpu().tolist(), r.device)
""")
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == ["0.0", "5.0", "0.0", "openreg:0"]


def test_an_override_made_before_the_first_use_stays(fresh):
    code = """
import torch
library = torch.library.Library("aten", "IMPL")
library.impl("special_xlogy", lambda x, y: torch.full_like(x, 7), "PrivateUse1")
library.impl("xlogy.Tensor", lambda x, y: torch.full_like(x, 8), "PrivateUse1")
library.impl("add.Tensor", lambda x, y, *, alpha=1: torch.full_like(x, 9), "PrivateUse1")
fallbacks = torch.library.Library("_", "IMPL")
fallbacks.fallback(lambda op, x, *rest: print(op.name()) or x, "PrivateUse1")
x = torch.ones(1, device="openreg")
torch.bincount(x)
print(torch.special.xlogy(x, x).item(), torch.xlogy(x, x).item(), (x + x).item())
del library
print((x + x).item())
"""
    assert printed(fresh(code)) == ["aten::bincount", "7.0", "8.0", "9.0", "2.0"]


def test_no_kernel_takes_the_place_of_a_derivative(fresh):
    # The host looks at what is registered by `import torch`; these come with the first use.
    code = """
import torch
def registered(key):
    return set(torch._C._dispatch_get_registrations_for_dispatch_key(key))
before = registered("PrivateUse1")
torch.openreg.init()
kernels = registered("PrivateUse1")
print(len(kernels - before) > 300)
composite = kernels & registered("CompositeImplicitAutograd")
print(*composite - registered("AutogradPrivateUse1") - registered("Autograd"))
"""
    assert printed(fresh(code)) == ["True"]


@pytest.mark.parametrize(
    "first_use",
    [
        "torch.ones(1, device='openreg')",
        "torch.rand(2).to('openreg')",
        "torch.UntypedStorage(8, device='openreg')",
        "torch.empty(2, pin_memory=True)",
        "torch.rand(2).pin_memory()",
        "torch.load(io.BytesIO(SAVED), map_location='openreg')",
        "torch.load(io.BytesIO(SAVED_THERE))",
        "torch.openreg.set_device(1)",
        "torch.openreg.synchronize()",
        "torch.openreg.current_stream()",
        "torch.openreg.mem_get_info()",
        "torch.openreg.get_rng_state()",
        "torch.openreg.get_device_properties()",
        "torch.openreg.init()",
        "torch.Stream(device='openreg')",
        "torch.accelerator.synchronize()",
        "torch.nn.Linear(2, 2).openreg()",
        "torch.openreg._sleep(0)",
        "torch.random.fork_rng([0], device_type='openreg').__enter__()",
        "torch.ops.aten.tril_indices(2, 2, device='openreg')",
        # PyTorch makes these tensors in C++, and says that the API is in prototype stage.
        "warnings.simplefilter('ignore'); torch.nested.nested_tensor([[0.0]], device='openreg')",
    ],
)
def test_whatever_uses_it_first_initialises_it(fresh, first_use):
    code = f"""
import io, torch, subprocess, sys, warnings
buffer = io.BytesIO(); torch.save(torch.ones(2), buffer); SAVED = buffer.getvalue()
if "SAVED_THERE" in {first_use!r}:
    there = "import torch; torch.save(torch.ones(2, device='openreg:1'), sys.stdout.buffer)"
    SAVED_THERE = subprocess.run(
        [sys.executable, "-c", "import sys, io; " + there], stdout=subprocess.PIPE).stdout
assert not torch.openreg.is_initialized()
{first_use}
print(torch.openreg.is_initialized(), torch.openreg._initialized)
print(len(torch.openreg.default_generators))
"""
    assert printed(fresh(code)) == ["True", "True", "2"]


def test_cpu_training_does_not_touch_the_device(fresh):
    code = """
import torch
layer = torch.nn.Linear(2, 2)
layer(torch.ones(1, 2)).sum().backward()
print(layer.weight.grad.sum().item(), torch.openreg.is_initialized())
"""
    assert printed(fresh(code)) == ["4.0", "False"]


def test_several_threads_use_it_first(fresh):
    code = """
import threading, torch
barrier, results = threading.Barrier(8), []
def work(index):
    barrier.wait()
    results.append(torch.full((4,), index, device=f"openreg:{index % 2}").sum().item())
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sum(results))
"""
    assert printed(fresh(code)) == ["112"]


# ---- Fork and spawn ----


def test_a_forked_child_is_told_to_use_spawn_and_the_parent_is_unharmed(fresh):
    code = """
import os, torch
x = torch.ones(4, device="openreg")
s = torch.Stream(device="openreg")
p = torch.empty(4, pin_memory=True)
uses = [
    lambda: torch.ones(1, device="openreg"),
    lambda: x + 1,
    lambda: x.cpu(),
    lambda: torch.rand(1).to("openreg"),
    lambda: torch.openreg.synchronize(),
    lambda: torch.Stream(device="openreg"),
    lambda: torch.empty(2, pin_memory=True),
    lambda: torch.openreg.get_rng_state(),
]
reader, writer = os.pipe()
pid = os.fork()
if pid == 0:
    assert torch.openreg._is_in_bad_fork() and not torch.openreg.is_initialized()
    torch.manual_seed(1)
    assert not p.is_pinned()
    for use in uses:
        try:
            use()
        except RuntimeError as error:
            os.write(writer, b"1" if "spawn" in str(error) else str(error).encode())
        else:
            os.write(writer, b"0")
    del x, s, p, uses
    raise SystemExit(3)  # an orderly exit, with everything that runs then
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
print(os.read(reader, 1000).decode(), (x + 1).sum().item())
"""
    assert printed(fresh(code)) == ["1" * 8, "8.0"]


def test_a_child_forked_before_the_first_use_works(fresh):
    code = """
import os, torch
pid = os.fork()
if pid == 0:
    assert not torch.openreg._is_in_bad_fork()
    os._exit(0 if torch.ones(2, device="openreg").sum().item() == 2 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), torch.openreg.is_initialized())
print(torch.ones(2, device="openreg").sum().item())
"""
    assert printed(fresh(code)) == ["0", "False", "2.0"]


def test_spawned_children_work(fresh, tmp_path):
    script = tmp_path / "spawning.py"
    script.write_text("""
import torch
import torch.multiprocessing as mp

def work(queue):
    queue.put(torch.ones(3, device="openreg:1").sum().item())

if __name__ == "__main__":
    x = torch.ones(1, device="openreg")
    context = mp.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    print(queue.get(), x.item())
    child.join()
    print(child.exitcode)
""")
    code = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    assert printed(fresh(code)) == ["3.0", "1.0", "0"]


# ---- The end ----

AT_EXIT = {
    "tensors": "x = torch.ones(1000, device='openreg'); y = torch.ones(4, device='openreg:1')",
    "pinned": "x = torch.empty(1000, pin_memory=True)",
    "graph": "w = torch.ones(4, device='openreg', requires_grad=True); y = (w * w).sum()",
    "backward": "w = torch.ones(4, device='openreg', requires_grad=True); (w * w).sum().backward()",
    "streams": "s = [torch.Stream(device='openreg') for _ in range(9)]; e = s[0].record_event()",
    "queued delay": "torch.openreg._sleep(300_000)",
    "queued copies": """
p = torch.ones(1 << 22, pin_memory=True)
torch.openreg._sleep(50_000)
for _ in range(20):
    d = p.to("openreg", non_blocking=True)
""",
    "a waiting stream": """
s = torch.Stream(device="openreg")
torch.openreg._sleep(100_000)
s.wait_stream(torch.openreg.current_stream())
""",
    "an atexit handler": """
import atexit
atexit.register(lambda: torch.ones(2, device="openreg").sum().item())
atexit.register(lambda: torch.openreg._sleep(1000))
""",
    "an object in a cycle": """
class Node: pass
n = Node(); n.self = n; n.x = torch.ones(4, device="openreg"); n.e = torch.Event(device="openreg")
n.e.record()
""",
    "sys.exit": "import sys; x = torch.ones(4, device='openreg'); sys.exit(0)",
}


@pytest.mark.parametrize("launch", ["inline", "async"])
@pytest.mark.parametrize("left", AT_EXIT)
def test_the_process_ends_well_whatever_is_left(fresh, left, launch):
    process = fresh(f"import torch\n{AT_EXIT[left]}\nprint('end')", OPENREG_LAUNCH=launch)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
