"""nn.LSTM runs a layer at a time, as on the CPU, and by cells where PyTorch's CPU does too."""

import copy

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence


def results(lstm, x, hx=None):
    """Outputs, final states and all gradients."""
    torch.manual_seed(1)  # dropout
    output, (hidden, cells) = lstm(x, hx)
    loss = output.square().sum() + hidden.sum() + cells.square().sum()
    gradients = torch.autograd.grad(loss, [x, *lstm.parameters()])
    return [output, hidden, cells, *gradients]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False},
        {"num_layers": 3},
        {"bidirectional": True},
        {"batch_first": True},
        {"num_layers": 2, "dropout": 0.5},
        {"num_layers": 2, "dropout": 0.3, "bidirectional": True, "bias": False},
    ],
    ids=str,
)
def test_layers_are_the_cpus_bit_by_bit(options):
    torch.manual_seed(0)
    host = torch.nn.LSTM(5, 7, **options)
    here = copy.deepcopy(host).to("openreg")
    x = torch.randn(4, 3, 5, requires_grad=True)
    torch.openreg.reset_fallback_stats()
    got = results(here, x.detach().to("openreg").requires_grad_())
    assert "aten::mkldnn_rnn_layer" not in torch.openreg.fallback_stats()
    for ours, wanted in zip(got, results(host, x), strict=True):
        assert ours.device.type == "openreg"
        assert torch.equal(ours.cpu(), wanted)


@pytest.mark.parametrize("case", ["given state", "no gradient", "inference", "evaluation"])
def test_a_layer_in_other_modes(case):
    torch.manual_seed(0)
    host = torch.nn.LSTM(5, 7, 2, dropout=0.5).train(case != "evaluation")
    here = copy.deepcopy(host).to("openreg")
    x, hx = torch.randn(4, 3, 5), (torch.randn(2, 3, 7), torch.randn(2, 3, 7))
    if case != "given state":
        hx = None
    modes = {"inference": torch.inference_mode, "given state": torch.enable_grad}

    def run(lstm, device):
        torch.manual_seed(1)
        state = None if hx is None else tuple(h.to(device) for h in hx)
        with modes.get(case, torch.no_grad)():
            output, states = lstm(x.to(device), state)
        return [output, *states]

    for ours, wanted in zip(run(here, "openreg"), run(host, "cpu"), strict=True):
        assert torch.equal(ours.cpu(), wanted)


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")  # the CPU
@pytest.mark.parametrize("case", ["projection", "packed", "float64", "no steps", "autocast"])
def test_what_has_no_layer_kernel_runs_by_cells(case):
    torch.manual_seed(0)
    dtype = torch.float64 if case == "float64" else torch.float32
    host = torch.nn.LSTM(5, 7, proj_size=3 if case == "projection" else 0).to(dtype)
    here = copy.deepcopy(host).to("openreg")
    x = torch.randn(2 if case == "no steps" else 4, 0 if case == "no steps" else 3, 5, dtype=dtype)

    def run(lstm, device):
        data = x.to(device)
        if case == "packed":
            data = pack_padded_sequence(data, [4, 2, 1])
        with torch.autocast(device, torch.bfloat16, enabled=case == "autocast"):
            output, (hidden, cells) = lstm(data)
        output = output.data if case == "packed" else output
        return [output, hidden, cells]

    tolerance = 2e-2 if case == "autocast" else 1e-6
    for ours, wanted in zip(run(here, "openreg"), run(host, "cpu"), strict=True):
        assert ours.device.type == "openreg"
        torch.testing.assert_close(
            ours.cpu(), wanted, rtol=tolerance, atol=tolerance, check_dtype=case != "autocast"
        )


def test_a_state_on_another_device_is_an_error(other_device):
    lstm = torch.nn.LSTM(5, 7).to("openreg:0")
    state = (torch.zeros(1, 3, 7, device=other_device),) * 2
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        lstm(torch.randn(4, 3, 5, device="openreg:0"), state)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled(backend):
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(5, 7, 2).to("openreg")
    x = torch.randn(4, 3, 5, device="openreg", requires_grad=True)
    compiled = torch.compile(lambda data: lstm(data)[0].square().sum(), backend=backend)
    wanted = torch.autograd.grad(lstm(x)[0].square().sum(), [x, *lstm.parameters()])
    got = torch.autograd.grad(compiled(x), [x, *lstm.parameters()])
    for ours, expected in zip(got, wanted, strict=True):
        torch.testing.assert_close(ours, expected)
