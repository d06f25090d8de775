// An operator of the device's own, from C++: the template for a plugin's operators. It takes a
// schema, a kernel for the device, one for shapes alone (Meta: fake tensors and torch.compile), and
// a derivative.
//
//   torch.ops.openreg.bias_gelu(x, bias)    gelu(x + bias), the usual end of a transformer's first
//   linear layer
//
// The sum is made once, in the result's memory, where aten would make two tensors.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "kernels/kernel.h"

namespace openreg {
namespace {

void check(const at::Tensor& self, const at::Tensor& bias) {
  TORCH_CHECK(self.is_floating_point(), "bias_gelu: expected a floating point tensor, but got ",
              self.scalar_type());
  TORCH_CHECK(bias.dim() == 1 && self.dim() >= 1 && bias.sym_size(0) == self.sym_size(-1),
              "bias_gelu: expected a bias of shape [", self.dim() >= 1 ? self.sym_size(-1) : 1,
              "], but got ", bias.sym_sizes());
  TORCH_CHECK(bias.scalar_type() == self.scalar_type(), "bias_gelu: expected a bias of dtype ",
              self.scalar_type(), ", but got ", bias.scalar_type());
}

at::Tensor bias_gelu(const at::Tensor& self, const at::Tensor& bias) {
  check(self, bias);
  at::Tensor result = self + bias;
  return at::gelu_(result);
}

at::Tensor bias_gelu_meta(const at::Tensor& self, const at::Tensor& bias) {
  check(self, bias);
  return at::empty_like(self);
}

class BiasGelu : public torch::autograd::Function<BiasGelu> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& self,
                            const at::Tensor& bias) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({self, bias});
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("openreg::bias_gelu", "")
                               .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
    return op.call(self, bias);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor grad = at::gelu_backward(grads[0], saved[0] + saved[1]);
    return {grad, grad.sum_to_size(saved[1].sizes())};
  }
};

at::Tensor bias_gelu_autograd(const at::Tensor& self, const at::Tensor& bias) {
  return BiasGelu::apply(self, bias);
}

TORCH_LIBRARY_FRAGMENT(openreg, library) {
  library.def("bias_gelu(Tensor self, Tensor bias) -> Tensor");
}
TORCH_LIBRARY_IMPL(openreg, PrivateUse1, library) {
  library.impl("bias_gelu", TORCH_FN(Composed<&bias_gelu>::call));
}
TORCH_LIBRARY_IMPL(openreg, Meta, library) { library.impl("bias_gelu", TORCH_FN(bias_gelu_meta)); }
TORCH_LIBRARY_IMPL(openreg, AutogradPrivateUse1, library) {
  library.impl("bias_gelu", TORCH_FN(bias_gelu_autograd));
}

}  // namespace
}  // namespace openreg
