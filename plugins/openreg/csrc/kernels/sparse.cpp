#include "kernels/sparse.h"

namespace openreg {

at::Tensor alias_sparse(AliasCall&, const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Tensors of layout ", tensor.layout(),
                              " are not supported on ", tensor.device(), ".");
}

at::Tensor wrap_sparse(AliasCall& call, const at::Tensor& result) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Results of layout ", result.layout(),
                              " are not supported on device ", c10::get_privateuse1_backend(), ":",
                              static_cast<int>(call.device()), ".");
}

}  // namespace openreg
