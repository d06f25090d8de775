"""Programs that train, unchanged, on the device."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

DIGITS = Path(__file__).parents[3] / "examples" / "digits.py"


def test_digits_train_as_on_the_cpu(tmp_path, environ):
    losses = {}
    for name, arguments in {"ndarray": (), "cpu": ("--device", "cpu")}.items():
        done = subprocess.run(
            [sys.executable, str(DIGITS), "--epochs", "3", "--json", "out.json", *arguments],
            cwd=tmp_path,
            env=environ(),
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        result = json.loads((tmp_path / "out.json").read_text())
        assert result["device"] == name
        assert result["accuracies"][-1] > 0.95
        losses[name] = result["losses"]
    assert losses["ndarray"] == pytest.approx(losses["cpu"], rel=0, abs=1e-5)


OPTIMIZERS = {
    "SGD": ({}, {"momentum": 0.9}, {"fused": True}),
    "Adam": ({}, {"fused": True}, {"amsgrad": True}),
    "AdamW": ({}, {"foreach": True}, {"foreach": False}, {"fused": True}, {"capturable": False}),
    "Adagrad": ({}, {"fused": True}),
    "RMSprop": ({}, {"momentum": 0.5, "centered": True}),
    "LBFGS": ({},),
}


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, options) for name, every in OPTIMIZERS.items() for options in every],
)
def test_optimizers_step_as_on_the_cpu(device, name, options):
    assert (
        device(
            f"""
        weights = []
        for where in ("cpu", "ndarray"):
            torch.manual_seed(0)
            model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(where)
            optimizer = torch.optim.{name}(model.parameters(), 0.1, **{options})
            def closure():
                optimizer.zero_grad()
                loss = model(torch.ones(2, 3, device=where)).square().sum()
                loss.backward()
                return loss
            for _ in range(3):
                optimizer.step(closure)
            weights.append([p.detach().cpu() for p in model.parameters()])
        torch.testing.assert_close(*weights, rtol=1e-4, atol=1e-5)
        """
        )
        is None
    )


MODELS = {
    "transformer": ("nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)", (2, 5, 8)),
    "convolutions": (
        "nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), "
        "nn.ConvTranspose2d(4, 2, 3, 2), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(8, 3))",
        (4, 1, 12, 12),
    ),
    "recurrent": ("nn.LSTM(3, 5, 2, bidirectional=True)", (4, 2, 3)),
    "norms": ("nn.Sequential(nn.GroupNorm(2, 4), nn.GELU(), nn.Conv1d(4, 2, 3))", (2, 4, 6)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_give_the_gradients_of_the_cpu(device, name):
    source, shape = MODELS[name]
    assert (
        device(
            f"""
        torch.manual_seed(0)
        model, x = {source}, torch.randn{shape}
        gradients = []
        for where in ("cpu", "ndarray"):
            copied = copy.deepcopy(model).to(where)
            result = tree_flatten(copied(x.to(where)))[0][0]
            result.square().mean().backward()
            gradients.append([result.detach().cpu(), *(p.grad.cpu() for p in copied.parameters())])
            gradients[-1] += [b.cpu() for b in copied.buffers()]  # running statistics
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)
        """
        )
        is None
    )


def test_data_loaders_feed_the_device(device):
    assert device(
        """
        from torch.utils.data import DataLoader, TensorDataset
        data = TensorDataset(torch.arange(10.0), torch.arange(10))
        seen = []
        for x, y in DataLoader(data, 4, num_workers=1):
            seen += (x.to("ndarray", non_blocking=True) + y.to("ndarray")).tolist()
        seen
        """
    ) == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]


def test_autograd(device, raises):
    assert device(
        """
        x = torch.tensor([1.0, 2.0], device="ndarray", requires_grad=True)
        seen = []
        (x ** 3).register_hook(lambda grad: seen.append(grad.tolist()))
        y = x ** 3
        y.register_hook(lambda grad: seen.append(grad.tolist()))
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        first.sum().backward()
        [first.tolist(), x.grad.tolist(), seen]
        """
    ) == [[3, 12], [6, 12], [[1, 1]]]
    assert device(
        """
        wide = dict(dtype=torch.float64, device="ndarray", requires_grad=True)
        torch.autograd.gradcheck(lambda a, b: (a @ b).tanh(), (torch.ones(2, 3, **wide),
                                                               torch.ones(3, 2, **wide)))
        """
    )
    device("y = x.exp(); y.add_(1)")
    with raises("RuntimeError: .*modified by an inplace operation.*ndarray.*version 1"):
        device("y.sum().backward()")


def test_function_transforms(device):
    forward, batched = device(
        """
        import warnings
        x = torch.tensor([1.0, 2.0], device="ndarray")
        with warnings.catch_warnings():
            # PyTorch's own forward mode uses torch.jit.script.
            warnings.simplefilter("ignore", DeprecationWarning)
            tangent = torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1]
        batched = torch.vmap(lambda v: v * v.sum())(torch.ones(2, 3, device="ndarray"))
        [torch.equal(tangent, x.cos()), batched.tolist()]
        """
    )
    assert forward is True
    assert batched == [[3, 3, 3], [3, 3, 3]]


def test_threads_can_train_at_once(device):
    assert (
        device(
            """
        import threading
        results = []
        def work():
            x = torch.ones(8, 8, device="ndarray", requires_grad=True)
            for _ in range(20):
                (x @ x).sum().backward()
            results.append(x.grad.unique().tolist())
        threads = [threading.Thread(target=work) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        results
        """
        )
        == [[320.0]] * 4
    )


def test_compile_with_eager_backends(device):
    for backend in ("eager", "aot_eager"):
        assert device(
            f"""
            x = torch.ones(2, device="ndarray", requires_grad=True)
            y = torch.compile(lambda a: (a * 2).relu() + 1, backend={backend!r})(x)
            y.sum().backward()
            [y.tolist(), x.grad.tolist()]
            """
        ) == [[3, 3], [2, 2]]
