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
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p,
                                                  std::optional<bool> train) {
  AliasCall call;
  const at::Tensor x = call.alias(input);
  call.begin();
  at::Tensor output, mask;
  if (!train.value_or(true) || x.numel() == 0) {
    output = x.clone();
    mask = at::ones_like(x, x.options().dtype(c10::kBool));
  } else if (p == 1) {
    output = x.mul(0);
    mask = at::zeros_like(x, x.options().dtype(c10::kBool));
  } else {
    at::Tensor noise = at::empty_like(x).bernoulli_(1 - p, engine_of(std::nullopt, call.device()));
    mask = noise.to(c10::kBool);
    output = x * noise.div_(1 - p);
  }
  call.finish();
  return FromKernel<std::tuple<at::Tensor, at::Tensor>>::convert(call, {output, mask});
}

// The CPU's derivative multiplies with what the forward pass multiplied with, bernoulli / (1 - p)
// in the data type. PyTorch's kernel for this operator scales by 1 / (1 - p) without rounding it
// first.
at::Tensor native_dropout_backward(const at::Tensor& grad_output, const at::Tensor& mask,
                                   double scale) {
  AliasCall call;
  const at::Tensor grad = call.alias(grad_output), kept = call.alias(mask);
  call.begin();
  const at::Tensor noise = kept.to(grad.scalar_type());
  at::Tensor result = grad * (scale == 0 ? noise.zero_() : noise.div_(1 / scale));
  call.finish();
  return call.wrap(std::move(result));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("native_dropout", TORCH_FN(native_dropout));
  library.impl("native_dropout_backward", TORCH_FN(native_dropout_backward));
}

}  // namespace
}  // namespace openreg
