// Operators with an unboxed kernel: those that a training step of a small perceptron, convolutional
// network or transformer is made of. Everything else goes through the boxed fallback, which does
// the same more slowly.
//
// A composite operator in this list (clone, embedding, convolution, ...) runs as one kernel instead
// of as the several that it is made of.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_adaptive_avg_pool2d_backward_ops.h>
#include <ATen/ops/_adaptive_avg_pool2d_ops.h>
#include <ATen/ops/_foreach_add_ops.h>
#include <ATen/ops/_foreach_addcdiv_ops.h>
#include <ATen/ops/_foreach_addcmul_ops.h>
#include <ATen/ops/_foreach_div_ops.h>
#include <ATen/ops/_foreach_lerp_ops.h>
#include <ATen/ops/_foreach_maximum_ops.h>
#include <ATen/ops/_foreach_mul_ops.h>
#include <ATen/ops/_foreach_neg_ops.h>
#include <ATen/ops/_foreach_norm_ops.h>
#include <ATen/ops/_foreach_sqrt_ops.h>
#include <ATen/ops/_foreach_sub_ops.h>
#include <ATen/ops/_foreach_zero_ops.h>
#include <ATen/ops/_fused_adam_ops.h>
#include <ATen/ops/_fused_adamw_ops.h>
#include <ATen/ops/_fused_sgd_ops.h>
#include <ATen/ops/_index_put_impl_ops.h>
#include <ATen/ops/_local_scalar_dense_ops.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/_stack_ops.h>
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/all_ops.h>
#include <ATen/ops/amax_ops.h>
#include <ATen/ops/amin_ops.h>
#include <ATen/ops/any_ops.h>
#include <ATen/ops/arange_ops.h>
#include <ATen/ops/argmax_ops.h>
#include <ATen/ops/argmin_ops.h>
#include <ATen/ops/avg_pool2d_backward_ops.h>
#include <ATen/ops/avg_pool2d_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/binary_cross_entropy_backward_ops.h>
#include <ATen/ops/binary_cross_entropy_ops.h>
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bitwise_not_ops.h>
#include <ATen/ops/bitwise_or_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/clamp_max_ops.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/clone_ops.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/cumsum_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/embedding_dense_backward_ops.h>
#include <ATen/ops/embedding_ops.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/erf_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/hardtanh_ops.h>
#include <ATen/ops/index_add_ops.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/leaky_relu_backward_ops.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/logical_not_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/max_ops.h>
#include <ATen/ops/max_pool2d_with_indices_backward_ops.h>
#include <ATen/ops/max_pool2d_with_indices_ops.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/min_ops.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mse_loss_backward_ops.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/mv_ops.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>
#include <ATen/ops/native_group_norm_backward_ops.h>
#include <ATen/ops/native_group_norm_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/nll_loss2d_backward_ops.h>
#include <ATen/ops/nll_loss2d_forward_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/nonzero_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/scatter_add_ops.h>
#include <ATen/ops/scatter_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/smooth_l1_loss_backward_ops.h>
#include <ATen/ops/smooth_l1_loss_ops.h>
#include <ATen/ops/sort_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/stack_ops.h>
#include <ATen/ops/std_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/topk_ops.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_ops.h>
#include <ATen/ops/upsample_nearest2d_backward_ops.h>
#include <ATen/ops/upsample_nearest2d_ops.h>
#include <ATen/ops/var_ops.h>
#include <ATen/ops/where_ops.h>
#include <ATen/ops/zero_ops.h>

#include "kernels/kernel.h"

namespace openreg {
namespace {

namespace op = at::_ops;

[[maybe_unused]] const bool registered = at_first_use([] {
  // Elementwise
  implement<op::abs, op::add_Tensor, op::add__Tensor, op::add_out, op::addcdiv, op::addcdiv_,
            op::addcmul, op::addcmul_, op::bitwise_and_Tensor, op::bitwise_not,
            op::bitwise_or_Tensor, op::clamp, op::clamp_, op::clamp_max, op::clamp_min, op::cos,
            op::div_Tensor, op::div__Tensor, op::div_out, op::eq_Scalar, op::eq_Tensor, op::erf,
            op::exp, op::exp_, op::ge_Scalar, op::ge_Tensor, op::gelu, op::gelu_backward,
            op::gt_Scalar, op::gt_Tensor, op::hardtanh, op::le_Scalar, op::le_Tensor,
            op::leaky_relu, op::leaky_relu_backward, op::lerp__Scalar, op::lerp__Tensor, op::log,
            op::logical_not, op::lt_Scalar, op::lt_Tensor, op::masked_fill_Scalar,
            op::masked_fill__Scalar, op::maximum, op::minimum, op::mul_Tensor, op::mul__Tensor,
            op::mul_out, op::ne_Scalar, op::ne_Tensor, op::neg, op::pow_Tensor_Scalar,
            op::pow_Tensor_Tensor, op::reciprocal, op::relu, op::relu_, op::rsqrt, op::sigmoid,
            op::sigmoid_, op::sigmoid_backward, op::silu, op::sin, op::sqrt, op::sqrt_,
            op::sub_Tensor, op::sub__Tensor, op::sub_out, op::tanh, op::tanh_, op::tanh_backward,
            op::threshold_backward, op::where_self>();

  // Reductions and scans
  implement<op::all, op::amax, op::amin, op::any, op::argmax, op::argmin, op::cumsum, op::max,
            op::max_dim, op::mean, op::mean_dim, op::min, op::min_dim, op::sort_stable,
            op::std_correction, op::sum, op::sum_dim_IntList, op::topk, op::var_correction>();

  // Matrix products
  implement<op::addmm, op::addmm_, op::addmm_out, op::addmv, op::baddbmm, op::bmm, op::dot, op::mm,
            op::mm_out, op::mv>();

  // Indexing, joining, copying
  implement<op::_index_put_impl_, op::_local_scalar_dense, op::_stack, op::arange_start_out,
            op::cat, op::clone, op::embedding, op::embedding_dense_backward, op::fill__Scalar,
            op::fill__Tensor, op::gather, op::index_Tensor, op::index_add, op::index_add_,
            op::index_select, op::nonzero, op::scatter_add, op::scatter_add_, op::scatter_src,
            op::scatter_value, op::stack, op::tril, op::triu, op::zero_>();

  // Normalisation and losses
  implement<op::_log_softmax, op::_log_softmax_backward_data, op::_softmax,
            op::_softmax_backward_data, op::binary_cross_entropy, op::binary_cross_entropy_backward,
            op::mse_loss, op::mse_loss_backward, op::native_batch_norm,
            op::native_batch_norm_backward, op::native_group_norm, op::native_group_norm_backward,
            op::native_layer_norm, op::native_layer_norm_backward, op::nll_loss2d_backward,
            op::nll_loss2d_forward, op::nll_loss_backward, op::nll_loss_forward, op::smooth_l1_loss,
            op::smooth_l1_loss_backward>();

  // Convolution and pooling
  implement<op::_adaptive_avg_pool2d, op::_adaptive_avg_pool2d_backward, op::avg_pool2d,
            op::avg_pool2d_backward, op::convolution, op::convolution_backward,
            op::max_pool2d_with_indices, op::max_pool2d_with_indices_backward,
            op::upsample_nearest2d, op::upsample_nearest2d_backward>();

  // Optimizers
  implement<op::_foreach_add_List, op::_foreach_add_Scalar, op::_foreach_add__List,
            op::_foreach_add__Scalar, op::_foreach_add__ScalarList, op::_foreach_addcdiv__Scalar,
            op::_foreach_addcdiv__ScalarList, op::_foreach_addcmul__Scalar, op::_foreach_div__List,
            op::_foreach_div__Scalar, op::_foreach_div__ScalarList, op::_foreach_lerp__Scalar,
            op::_foreach_maximum__List, op::_foreach_mul_Scalar, op::_foreach_mul__List,
            op::_foreach_mul__Scalar, op::_foreach_mul__Tensor, op::_foreach_neg,
            op::_foreach_norm_Scalar, op::_foreach_sqrt, op::_foreach_sub__Scalar,
            op::_foreach_zero_, op::_fused_adam_, op::_fused_adam__tensor_lr, op::_fused_adamw_,
            op::_fused_adamw__tensor_lr, op::_fused_sgd_>();
});

}  // namespace
}  // namespace openreg
