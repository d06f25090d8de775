"""The cells of torch.nn.LSTM and torch.nn.GRU, which PyTorch wants in one piece from a device.

Gates are (N, gates * H): N samples of H numbers for each gate. Source of the equations and of the
order of the gates: the documentation of torch.nn.LSTM and torch.nn.GRU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from devhost_numpy.elementwise import sigmoid
from devhost_numpy.kernels import register as register_table

if TYPE_CHECKING:
    from devhost import KernelRegistry
    from devhost_numpy.memory import Array


def _biased(gates: Array, bias: Array | None) -> Array:
    return gates if bias is None else gates + bias


def _lstm_cell(
    input_gates: Array,
    hidden_gates: Array,
    cx: Array,
    input_bias: Array | None = None,
    hidden_bias: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Return the hidden state, the cell state, and the gates for the derivative."""
    gates = _biased(input_gates, input_bias) + _biased(hidden_gates, hidden_bias)
    i, f, g, o = np.split(gates, 4, 1)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    cy = f * cx + i * g
    return o * np.tanh(cy), cy, np.concatenate((i, f, g, o), 1)


def _lstm_cell_backward(
    grad_hy: Array | None,
    grad_cy: Array | None,
    cx: Array,
    cy: Array,
    workspace: Array,
    has_bias: bool,
) -> tuple[Array, Array, Array | None]:
    i, f, g, o = np.split(workspace, 4, 1)
    tanh = np.tanh(cy)
    grad_hy = np.zeros_like(cy) if grad_hy is None else grad_hy
    grad_c = grad_hy * o * (1 - tanh * tanh) + (0 if grad_cy is None else grad_cy)
    grad_gates = np.concatenate(
        (
            grad_c * g * i * (1 - i),
            grad_c * cx * f * (1 - f),
            grad_c * i * (1 - g * g),
            grad_hy * tanh * o * (1 - o),
        ),
        1,
    )
    return grad_gates, grad_c * f, grad_gates.sum(0) if has_bias else None


def _gru_cell(
    input_gates: Array,
    hidden_gates: Array,
    hx: Array,
    input_bias: Array | None = None,
    hidden_bias: Array | None = None,
) -> tuple[Array, Array]:
    """Return the hidden state, and what the derivative needs."""
    ir, iz, i_n = np.split(_biased(input_gates, input_bias), 3, 1)
    hr, hz, hn = np.split(_biased(hidden_gates, hidden_bias), 3, 1)
    r, z = sigmoid(ir + hr), sigmoid(iz + hz)
    n = np.tanh(i_n + r * hn)
    return n + z * (hx - n), np.concatenate((r, z, n, hx, hn), 1)


def _gru_cell_backward(
    grad_hy: Array, workspace: Array, has_bias: bool
) -> tuple[Array, Array, Array, Array | None, Array | None]:
    r, z, n, hx, hn = np.split(workspace, 5, 1)
    grad_n = grad_hy * (1 - z) * (1 - n * n)
    grad_z = grad_hy * (hx - n) * z * (1 - z)
    grad_r = grad_n * hn * r * (1 - r)
    grad_input = np.concatenate((grad_r, grad_z, grad_n), 1)
    grad_hidden = np.concatenate((grad_r, grad_z, grad_n * r), 1)
    biases = (grad_input.sum(0), grad_hidden.sum(0)) if has_bias else (None, None)
    return grad_input, grad_hidden, grad_hy * z, *biases


CELLS = {
    "_thnn_fused_lstm_cell": _lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
    "_thnn_fused_gru_cell": _gru_cell,
    "_thnn_fused_gru_cell_backward": _gru_cell_backward,
}


def register(registry: KernelRegistry) -> None:
    """Register the kernels."""
    register_table(registry, CELLS)
