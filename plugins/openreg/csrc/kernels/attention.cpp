// scaled_dot_product_attention: the CPU's fused kernel where the CPU would take it, otherwise
// PyTorch's composite one.
#include <ATen/SDPBackend.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_ops.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_ops.h>

#include "kernels/kernel.h"

namespace at::native {

// The CPU's choice depends on shapes, dtypes and flags alone, so that it can be asked about device
// tensors.
static int64_t openreg_sdp_choice(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const std::optional<Tensor>& attn_mask, double dropout_p,
                                  bool is_causal, std::optional<double> scale, bool enable_gqa) {
  const int64_t choice = at::_ops::_fused_sdp_choice::redispatch(
      openreg::kCpuKeys, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa);
  const bool fused = choice == static_cast<int64_t>(SDPBackend::flash_attention);
  return fused ? static_cast<int64_t>(SDPBackend::overrideable) : choice;
}
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &openreg_sdp_choice)

}  // namespace at::native

namespace openreg {
namespace {

using Forward = at::_ops::_scaled_dot_product_flash_attention_for_cpu;
using Backward = at::_ops::_scaled_dot_product_flash_attention_for_cpu_backward;

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
           at::Tensor, at::Tensor>
attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
          const std::optional<at::Tensor>& attn_bias, double dropout_p, bool is_causal,
          bool /*return_debug_mask*/, std::optional<double> scale) {
  auto [output, logsumexp] =
      Kernel<Forward>::call(query, key, value, dropout_p, is_causal, attn_bias, scale);
  // The rest belongs to kernels for packed sequences and dropout, which the choice above never
  // sends here.
  return {output, logsumexp, {}, {}, query.sym_size(-2), key.sym_size(-2), {}, {}, {}};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> attention_backward(
    const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key,
    const at::Tensor& value, const at::Tensor& attn_bias, std::array<bool, 4> /*grad_input_mask*/,
    const at::Tensor& out, const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&,
    c10::SymInt, c10::SymInt, double dropout_p, bool is_causal, const at::Tensor&,
    const at::Tensor&, std::optional<double> scale) {
  const auto mask = attn_bias.defined() ? std::optional<at::Tensor>(attn_bias) : std::nullopt;
  auto [query_grad, key_grad, value_grad] = Kernel<Backward>::call(
      grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, mask, scale);
  return {query_grad, key_grad, value_grad, {}};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(attention));
  library.impl("_scaled_dot_product_fused_attention_overrideable_backward",
               TORCH_FN(attention_backward));
}

}  // namespace
}  // namespace openreg
