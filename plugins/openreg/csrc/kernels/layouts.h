// Aliases of tensors that are not plain strided ones.
//
// A sparse tensor's alias is a CPU tensor of the same layout whose parts (indices and values) are
// aliases of the parts. Quantized and nested tensors have a storage like a plain one, and more
// beside it, which the alias shares.
#pragma once

#include "kernels/alias.h"

namespace openreg {

// Of a quantized or nested tensor, over the kernels' storage of its bytes.
at::Tensor alias_over(const at::Tensor& tensor, c10::Storage storage);

// Every part becomes an argument of the call, so that what the kernel returns of it is recognised.
at::Tensor alias_sparse(AliasCall& call, const at::Tensor& tensor);

// The device tensor for a sparse result.
at::Tensor wrap_sparse(AliasCall& call, const at::Tensor& result);

// Gives an argument that the kernel has written the parts and the shape that its alias has now.
void update_sparse(AliasCall& call, c10::TensorImpl& original, const at::Tensor& alias);

}  // namespace openreg
