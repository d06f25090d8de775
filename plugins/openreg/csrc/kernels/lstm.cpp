// nn.LSTM a layer at a time, through oneDNN, as on the CPU. PyTorch composes it of one cell for
// each step on every other device, which takes several times as long.
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/mkldnn_rnn_layer_backward_ops.h>
#include <ATen/ops/mkldnn_rnn_layer_ops.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include "kernels/kernel.h"

namespace openreg {
namespace {

using at::Tensor;

constexpr int64_t kLstm = 2;  // oneDNN's number for this kind of network

// The CPU's conditions, and: only float32, since other types depend on the processor; not under
// autocast, which knows the cells; not where a graph is traced, which PyTorch decomposes itself.
bool runs_by_layer(const Tensor& input, at::TensorList hx, at::TensorList weights) {
  const auto eligible = [](const Tensor& tensor) {
    return tensor.scalar_type() == at::kFloat && tensor.is_privateuseone() &&
           !tensor.key_set().has_any(c10::python_ks);
  };
  return at::globalContext().userEnabledMkldnn() && input.numel() != 0 && eligible(input) &&
         input.dim() == 3 && hx.size() == 2 && hx[0].dim() == 3 && hx[0].sizes() == hx[1].sizes() &&
         std::all_of(hx.begin(), hx.end(), eligible) &&
         std::all_of(weights.begin(), weights.end(), eligible) &&
         !at::autocast::is_autocast_enabled(c10::DeviceType::PrivateUse1);
}

// Arguments and results as documented for torch.nn.LSTM; hx is (h_0, c_0).
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, at::TensorList hx,
                                        at::TensorList weights, bool has_biases, int64_t num_layers,
                                        double dropout, bool train, bool bidirectional,
                                        bool batch_first) {
  const int64_t directions = bidirectional ? 2 : 1;
  const int64_t per_layer = has_biases ? 4 : 2;
  // Projections, and weights that do not fit, are left to PyTorch and its errors.
  if (!runs_by_layer(input, hx, weights) ||
      static_cast<int64_t>(weights.size()) != num_layers * directions * per_layer ||
      hx[0].size(0) != num_layers * directions) {
    return at::native::lstm(input, hx, weights, has_biases, num_layers, dropout, train,
                            bidirectional, batch_first);
  }
  const int64_t hidden_size = hx[0].size(2);
  Tensor layer_input = (batch_first ? input.transpose(0, 1) : input).contiguous();
  std::vector<Tensor> hidden, cells, outputs(directions);
  for (int64_t index = 0; index < num_layers * directions; ++index) {
    const at::TensorList w = weights.slice(index * per_layer, per_layer);
    const bool reverse = index % directions == 1;
    auto [output, hy, cy, workspace] = at::mkldnn_rnn_layer(
        layer_input, w[0], w[1], has_biases ? w[2] : at::zeros_like(w[0]),
        has_biases ? w[3] : at::zeros_like(w[1]), hx[0][index].contiguous(),
        hx[1][index].contiguous(), reverse, /*batch_sizes=*/{}, kLstm, hidden_size, num_layers,
        has_biases, bidirectional, batch_first, train);
    hidden.push_back(std::move(hy));
    cells.push_back(std::move(cy));
    outputs[index % directions] = std::move(output);
    if (index % directions != directions - 1) continue;  // the other direction comes next
    layer_input = bidirectional ? at::cat(outputs, -1) : outputs[0];
    if (dropout > 0 && train && index + 1 < num_layers * directions) {
      layer_input = at::dropout(layer_input, dropout, /*train=*/true);
    }
  }
  if (batch_first) layer_input = layer_input.transpose(0, 1);
  return {layer_input, at::stack(hidden), at::stack(cells)};
}

[[maybe_unused]] const bool registered = at_first_use([] {
  implement<at::_ops::mkldnn_rnn_layer, at::_ops::mkldnn_rnn_layer_backward>();
  // For autograd as well: the derivative is that of the layers.
  for (const auto key : {c10::DispatchKey::PrivateUse1, c10::DispatchKey::AutogradPrivateUse1}) {
    Registrar(key).impl("aten::lstm.input", TORCH_FN(lstm));
  }
});

}  // namespace
}  // namespace openreg
