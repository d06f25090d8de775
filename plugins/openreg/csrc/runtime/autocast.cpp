// Autocast: which operators run in lower precision, which in float32, and which in the widest type
// of their inputs. The lists are the ones PyTorch publishes for its back ends, which are CUDA's;
// the casts, with the weight cache, are PyTorch's own.
//
// Every other operator runs on what it is given; the host lets them fall through.
#include <ATen/autocast_mode.h>

#include "runtime/registrar.h"

namespace openreg {
namespace {

// The names that PyTorch's lists below are written in.
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

// As on CUDA: its input is a sigmoid's output, and float16 has lost there what its logarithm needs.
Tensor refuse_binary_cross_entropy(const Tensor&, const Tensor&, const std::optional<Tensor>&,
                                   int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to "
              "autocast. Use binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss, which "
              "combine them with the sigmoid before them, or disable autocast for this call and "
              "give it float32.");
}

[[maybe_unused]] const bool registered = at_first_use([] {
  // PyTorch's macros call the library `m`.
  Registrar m(c10::DispatchKey::AutocastPrivateUse1);
#define LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FLOAT32_BY_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define FLOAT32_BY_OVERLOAD(...) KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE(__VA_ARGS__)
#define PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

  AT_FORALL_LOWER_PRECISION_FP(LOWER_PRECISION)
  AT_FORALL_FP32(FLOAT32)
  AT_FORALL_FP32_SET_OPT_DTYPE(FLOAT32_BY_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(FLOAT32_BY_OVERLOAD)
  AT_FORALL_PROMOTE(PROMOTE)
  m.impl("aten::binary_cross_entropy", TORCH_FN(refuse_binary_cross_entropy));
});

}  // namespace
}  // namespace openreg
