// Aliases of sparse tensors: a CPU tensor of the same layout over aliases of the parts.
#pragma once

#include "kernels/alias.h"

namespace openreg {

at::Tensor alias_sparse(AliasCall& call, const at::Tensor& tensor);
at::Tensor wrap_sparse(AliasCall& call, const at::Tensor& result);

}  // namespace openreg
