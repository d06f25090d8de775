// LSTM and GRU cells. PyTorch sends every out-of-tree device to the fused cells, for which the CPU
// has no kernel: here they are put together from elementwise kernels that run on aliases.
//
// Gates come in PyTorch's order: input, forget, cell, output for LSTM; reset, update, new for GRU.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "kernels/kernel.h"

namespace openreg {
namespace {

using at::Tensor;

Tensor sum_of(const Tensor& input_gates, const Tensor& hidden_gates,
              const std::optional<Tensor>& input_bias, const std::optional<Tensor>& hidden_bias) {
  Tensor gates = input_gates + hidden_gates;
  if (input_bias.has_value() && input_bias->defined()) gates.add_(*input_bias).add_(*hidden_bias);
  return gates;
}

Tensor with_bias(const Tensor& gates, const std::optional<Tensor>& bias) {
  return bias.has_value() && bias->defined() ? gates + *bias : gates;
}

// The derivative of sigmoid (tanh) in terms of its value.
Tensor through_sigmoid(const Tensor& grad, const Tensor& value) {
  return grad * value * (1 - value);
}
Tensor through_tanh(const Tensor& grad, const Tensor& value) { return grad * (1 - value * value); }

// -> hidden (N, H), cell (N, H), workspace (N, 4H): the gates after their activations.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates,
                                             const Tensor& cx,
                                             const std::optional<Tensor>& input_bias,
                                             const std::optional<Tensor>& hidden_bias) {
  Tensor workspace = sum_of(input_gates, hidden_gates, input_bias, hidden_bias);
  const auto gates = workspace.chunk(4, 1);
  gates[0].sigmoid_();
  gates[1].sigmoid_();
  gates[2].tanh_();
  gates[3].sigmoid_();
  Tensor cy = (gates[1] * cx).add_(gates[0] * gates[2]);
  Tensor hy = gates[3] * cy.tanh();
  return {hy, cy, workspace};
}

// -> gradients of the gates (N, 4H), the cell (N, H) and the bias (4H).
std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const std::optional<Tensor>& grad_hy,
                                                      const std::optional<Tensor>& grad_cy,
                                                      const Tensor& cx, const Tensor& cy,
                                                      const Tensor& workspace, bool has_bias) {
  const bool has_hy = grad_hy.has_value() && grad_hy->defined();
  const bool has_cy = grad_cy.has_value() && grad_cy->defined();
  if (!has_hy && !has_cy) return {};
  const auto gates = workspace.chunk(4, 1);
  const Tensor tanh_c = cy.tanh();
  const Tensor out = has_hy ? *grad_hy * tanh_c : cx.new_zeros(cx.sizes());
  Tensor dc = has_hy ? through_tanh(*grad_hy * gates[3], tanh_c) : grad_cy->clone();
  if (has_hy && has_cy) dc.add_(*grad_cy);
  Tensor grad_gates =
      at::cat({through_sigmoid(dc * gates[2], gates[0]), through_sigmoid(dc * cx, gates[1]),
               through_tanh(dc * gates[0], gates[2]), through_sigmoid(out, gates[3])},
              1);
  Tensor grad_cx = dc * gates[1];
  Tensor grad_bias = has_bias ? grad_gates.sum(0) : Tensor();
  return {grad_gates, grad_cx, grad_bias};
}

// -> hidden (N, H), workspace (N, 5H): reset, update and new gate, the previous hidden state, and
// what the reset gate was multiplied with.
std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates,
                                    const Tensor& hx, const std::optional<Tensor>& input_bias,
                                    const std::optional<Tensor>& hidden_bias) {
  const auto in = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor reset = (in[0] + hidden[0]).sigmoid_();
  const Tensor update = (in[1] + hidden[1]).sigmoid_();
  const Tensor fresh = (in[2] + reset * hidden[2]).tanh_();
  Tensor hy = (hx - fresh).mul_(update).add_(fresh);
  Tensor workspace = at::cat({reset, update, fresh, hx, hidden[2]}, 1);
  return {hy, workspace};
}

// -> gradients of the input gates and the hidden gates (N, 3H each), the hidden state (N, H) and
// both biases (3H).
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad_hy,
                                                                     const Tensor& workspace,
                                                                     bool has_bias) {
  const auto saved = workspace.chunk(5, 1);
  const Tensor &reset = saved[0], &update = saved[1], &fresh = saved[2], &hx = saved[3],
               &hidden = saved[4];
  const Tensor d_update = through_sigmoid(grad_hy * (hx - fresh), update);
  const Tensor d_fresh = through_tanh(grad_hy * (1 - update), fresh);
  const Tensor d_reset = through_sigmoid(d_fresh * hidden, reset);
  Tensor grad_input = at::cat({d_reset, d_update, d_fresh}, 1);
  Tensor grad_hidden = at::cat({d_reset, d_update, d_fresh * reset}, 1);
  Tensor grad_hx = grad_hy * update;
  Tensor input_bias = has_bias ? grad_input.sum(0) : Tensor();
  Tensor hidden_bias = has_bias ? grad_hidden.sum(0) : Tensor();
  return {grad_input, grad_hidden, grad_hx, input_bias, hidden_bias};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_thnn_fused_lstm_cell", TORCH_FN(Composed<&lstm_cell>::call));
  library.impl("_thnn_fused_lstm_cell_backward_impl",
               TORCH_FN(Composed<&lstm_cell_backward>::call));
  library.impl("_thnn_fused_gru_cell", TORCH_FN(Composed<&gru_cell>::call));
  library.impl("_thnn_fused_gru_cell_backward", TORCH_FN(Composed<&gru_cell_backward>::call));
}

}  // namespace
}  // namespace openreg
