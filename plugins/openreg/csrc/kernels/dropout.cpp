// native_dropout and its derivative. The CPU's kernel draws from the default CPU generator and
// takes no other, so that it cannot be used.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include "kernels/kernel.h"

namespace openreg {
namespace {

// The same draws and the same rounding as dropout on the CPU, which multiplies with bernoulli(1 -
// p) / (1 - p).
std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& x, double p, std::optional<bool> train,
                                           std::optional<at::Generator> generator) {
  if (!train.value_or(true) || x.numel() == 0) {
    return {x.clone(), at::ones_like(x, x.options().dtype(c10::kBool))};
  }
  if (p == 1) return {x.mul(0), at::zeros_like(x, x.options().dtype(c10::kBool))};
  at::Tensor noise = at::empty_like(x).bernoulli_(1 - p, std::move(generator));
  at::Tensor mask = noise.to(c10::kBool);
  return {x * noise.div_(1 - p), mask};
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p,
                                                  std::optional<bool> train) {
  return Composed<&dropout>::call(input, p, train, std::nullopt);
}

// The CPU's derivative multiplies with what the forward pass multiplied with, bernoulli / (1 - p)
// in the data type. PyTorch's kernel for this operator, which also takes integers, scales by
// 1 / (1 - p) without rounding it first.
at::Tensor native_dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double scale) {
  if (!grad.is_floating_point()) return grad * mask * scale;
  const at::Tensor noise = mask.to(grad.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  return grad * (scale == 0 ? noise.zero_() : noise.div_(1 / scale));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("native_dropout", TORCH_FN(native_dropout));
  library.impl("native_dropout_backward", TORCH_FN(Composed<&native_dropout_backward>::call));
}

}  // namespace
}  // namespace openreg
