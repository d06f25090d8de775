"""OPENREG_LAUNCH=async: kernels are queued, results are the same, and errors come later."""

import pytest

TRAIN = """
import torch
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to("openreg")
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
x = torch.randn(4, 8, 16).to("openreg")
for _ in range(4):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""


def run(fresh, code, launch="async"):
    process = fresh(code, OPENREG_LAUNCH=launch)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def test_training_gives_the_same_losses(fresh):
    losses = run(fresh, TRAIN)
    assert len(losses) == 4
    assert losses == run(fresh, TRAIN, "inline")


def test_a_missing_synchronization_shows(fresh):
    code = """
import torch
x = torch.ones(4, device="openreg")
host = torch.zeros(4).pin_memory()
x + 1  # loads PyTorch's Meta kernels
torch.openreg.synchronize()
torch.openreg._sleep(300_000)
host.copy_(x + 1, non_blocking=True)
print(host.tolist())
torch.openreg.synchronize()
print(host.tolist())
"""
    assert run(fresh, code) == ["[0.0, 0.0, 0.0, 0.0]", "[2.0, 2.0, 2.0, 2.0]"]


def test_the_caller_may_change_what_it_has_given_away(fresh):
    code = """
import torch
x = torch.arange(6.0, device="openreg").view(2, 3)
scalar = torch.tensor(2.0)
torch.openreg._sleep(100_000)
y = x * scalar
scalar.fill_(100)
x.t_()  # another shape, before the product is computed
y.resize_(6)
print(y.tolist())
del x
z = y + 1
del y
print(z.tolist())
"""
    assert run(fresh, code) == [
        "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]",
        "[1.0, 3.0, 5.0, 7.0, 9.0, 11.0]",
    ]


@pytest.mark.parametrize("wait", ["torch.openreg.synchronize()", "y.cpu()"])
def test_an_error_is_raised_at_the_next_synchronization_and_names_the_operator(fresh, wait):
    code = f"""
import torch
x = torch.arange(4.0, device="openreg")
y = x.index_select(0, torch.tensor([99], device="openreg"))
print("queued")
try:
    {wait}
except RuntimeError as error:
    print("aten::index_select" in str(error), "out of range" in str(error))
print(x.sum().item())
"""
    assert run(fresh, code) == ["queued", "True True", "6.0"]


def test_errors_that_shapes_show_are_raised_at_once(fresh):
    code = """
import torch
try:
    torch.mm(torch.ones(2, 3, device="openreg"), torch.ones(2, 3, device="openreg"))
except RuntimeError as error:
    print("shapes cannot be multiplied" in str(error))
"""
    assert run(fresh, code) == ["True"]


def test_foreach_writes_are_noticed_by_autograd(fresh):
    code = """
import torch
w = torch.ones(2, 3, device="openreg", requires_grad=True)
b = torch.ones(2, 3, device="openreg")
y = (w * b).sum()
torch._foreach_add_([b], 1.0)
try:
    y.backward()
except RuntimeError as error:
    print("modified by an inplace operation" in str(error))
"""
    assert run(fresh, code) == ["True"]


BACKWARD_THREADS = """
import threading, torch
def backward(device):
    threads = set()
    x = torch.ones(2, device=device, requires_grad=True)
    y = x * 2
    y.register_hook(lambda gradient: threads.add(threading.get_ident()))
    y.sum().backward()
    assert x.grad.cpu().tolist() == [2, 2]
    return threads == {threading.get_ident()}
print(backward("openreg:0"), backward("openreg:1"))
def work():
    print(backward("openreg:1"))
    with torch.autograd.set_multithreading_enabled(True):
        print(backward("openreg:0"))
thread = threading.Thread(target=work); thread.start(); thread.join()
"""


def test_inline_backward_stays_on_the_thread_that_calls_it(fresh):
    # Unless the program wants the device's own thread, which each Python thread may decide.
    assert run(fresh, BACKWARD_THREADS, "inline") == ["True True", "True", "False"]


def test_queued_backward_runs_on_the_devices_thread(fresh):
    assert run(fresh, BACKWARD_THREADS, "async") == ["False False", "False", "False"]
