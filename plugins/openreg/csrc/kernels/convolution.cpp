// convolution_overrideable, the operator that PyTorch's own _convolution() calls for an out-of-tree
// device. The usual way in is aten::convolution, which is registered directly (native.cpp).
#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_backward_overrideable_ops.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/convolution_overrideable_ops.h>

#include "kernels/kernel.h"

namespace openreg {
namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
    c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
    bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups,
    std::array<bool, 3> output_mask) {
  const c10::SymInt bias_size = transposed ? weight.sym_size(1) * groups : weight.sym_size(0);
  return Kernel<at::_ops::convolution_backward>::call(
      grad_output, input, weight, c10::SymIntArrayRef(bias_size), stride, padding, dilation,
      transposed, output_padding, groups, output_mask);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("convolution_overrideable", TORCH_FN(Kernel<at::_ops::convolution>::call));
  library.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
}

}  // namespace
}  // namespace openreg
