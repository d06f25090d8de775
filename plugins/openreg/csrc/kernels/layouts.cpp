#include "kernels/layouts.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/sparse_resize_and_clear_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/quantized/QTensorImpl.h>
#include <torch/library.h>

#include "kernels/copy.h"
#include "runtime/device.h"

namespace openreg {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

template <class Impl>
Impl& impl_of(const at::Tensor& tensor) {
  return *static_cast<Impl*>(tensor.unsafeGetTensorImpl());
}

// A tensor of the same layout, shape and dtype as `like`, from other parts.
at::Tensor rebuild_coo(const at::Tensor& like, DispatchKey key, const at::Tensor& indices,
                       const at::Tensor& values) {
  const auto& source = impl_of<at::SparseTensorImpl>(like);
  auto made = at::detail::make_tensor<at::SparseTensorImpl>(DispatchKeySet(key), source.dtype());
  auto& impl = impl_of<at::SparseTensorImpl>(made);
  impl.raw_resize_(source.sparse_dim(), source.dense_dim(), source.sizes());
  impl.set_indices_and_values_unsafe(indices, values);
  impl.set_coalesced(source.coalesced());
  return made;
}

// PyTorch says with every compressed tensor that they are new; an alias is no new one.
struct Silence final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

at::Tensor rebuild_compressed(const at::Tensor& like, DispatchKey key, c10::Device device,
                              const at::Tensor& compressed, const at::Tensor& plain,
                              const at::Tensor& values) {
  static Silence silence;
  const c10::WarningUtils::WarningHandlerGuard quiet(&silence);
  auto made = at::detail::make_tensor<at::SparseCsrTensorImpl>(DispatchKeySet(key), device,
                                                               like.layout(), like.dtype());
  impl_of<at::SparseCsrTensorImpl>(made).set_member_tensors(compressed, plain, values,
                                                            like.sizes());
  return made;
}

}  // namespace

at::Tensor alias_over(const at::Tensor& tensor, c10::Storage storage) {
  if (tensor.is_quantized()) {
    return at::detail::make_tensor<at::QTensorImpl>(
        std::move(storage), DispatchKeySet(DispatchKey::QuantizedCPU), tensor.dtype(),
        impl_of<at::QTensorImpl>(tensor).quantizer());
  }
  const auto& nested = impl_of<at::native::NestedTensorImpl>(tensor);
  return at::detail::make_tensor<at::native::NestedTensorImpl>(
      std::move(storage), DispatchKeySet(DispatchKey::NestedTensorCPU), tensor.dtype(),
      nested.get_nested_sizes(), nested.get_nested_strides(), nested.get_storage_offsets());
}

at::Tensor alias_sparse(AliasCall& call, const at::Tensor& tensor) {
  const auto part = [&](at::Tensor of) { return call.alias(call.keep(std::move(of))); };
  if (tensor.layout() == c10::kSparse) {
    const auto& impl = impl_of<at::SparseTensorImpl>(tensor);
    return rebuild_coo(tensor, DispatchKey::SparseCPU, part(impl.indices()), part(impl.values()));
  }
  TORCH_CHECK_NOT_IMPLEMENTED(at::sparse_csr::is_sparse_compressed(tensor), "Tensors of layout ",
                              tensor.layout(), " are not supported on ", tensor.device(), ".");
  const auto& impl = impl_of<at::SparseCsrTensorImpl>(tensor);
  return rebuild_compressed(tensor, DispatchKey::SparseCsrCPU, c10::Device(c10::kCPU),
                            part(impl.compressed_indices()), part(impl.plain_indices()),
                            part(impl.values()));
}

at::Tensor wrap_sparse(AliasCall& call, const at::Tensor& result) {
  const DeviceScope scope(call.device());  // where a sparse tensor makes its first, empty parts
  if (result.layout() == c10::kSparse) {
    const auto& impl = impl_of<at::SparseTensorImpl>(result);
    return rebuild_coo(result, DispatchKey::SparsePrivateUse1, call.wrap_part(impl.indices()),
                       call.wrap_part(impl.values()));
  }
  TORCH_CHECK_NOT_IMPLEMENTED(at::sparse_csr::is_sparse_compressed(result), "Results of layout ",
                              result.layout(), " are not supported on ", device_at(call.device()),
                              ".");
  const auto& impl = impl_of<at::SparseCsrTensorImpl>(result);
  return rebuild_compressed(result, DispatchKey::SparseCsrPrivateUse1, device_at(call.device()),
                            call.wrap_part(impl.compressed_indices()),
                            call.wrap_part(impl.plain_indices()), call.wrap_part(impl.values()));
}

void update_sparse(AliasCall& call, c10::TensorImpl& original, const at::Tensor& alias) {
  if (alias.layout() == c10::kSparse) {
    const auto& from = impl_of<at::SparseTensorImpl>(alias);
    auto& to = static_cast<at::SparseTensorImpl&>(original);
    to.raw_resize_(from.sparse_dim(), from.dense_dim(), from.sizes());
    to.set_indices_and_values_unsafe(call.wrap_part(from.indices()), call.wrap_part(from.values()));
    to.set_coalesced(from.coalesced());
  } else {
    const auto& from = impl_of<at::SparseCsrTensorImpl>(alias);
    static_cast<at::SparseCsrTensorImpl&>(original).set_member_tensors(
        call.wrap_part(from.compressed_indices()), call.wrap_part(from.plain_indices()),
        call.wrap_part(from.values()), alias.sizes());
  }
}

namespace {

// Copies go part by part through the dense copy_, in every direction between devices; PyTorch's own
// code does that.
TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, library) {
  library.impl("copy_", TORCH_FN(at::native::copy_sparse_wrapper_));
  library.impl("copy_sparse_to_sparse_", TORCH_FN(at::native::copy_sparse_));
  library.impl("_coalesced_", TORCH_FN(at::native::_coalesced_sparse_));
  library.impl("sparse_resize_", TORCH_FN(at::native::sparse_resize_));
  library.impl("sparse_resize_and_clear_", TORCH_FN(at::native::sparse_resize_and_clear_));
}
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, library) {
  library.impl("copy_", TORCH_FN(at::native::copy_sparse_compressed_));
}

TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, library) { library.impl("copy_", TORCH_FN(copy_)); }
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, library) {
  library.impl("copy_", TORCH_FN(at::native::copy_nested_));
  library.impl("_to_copy", TORCH_FN(at::native::_to_copy_nested));
}

}  // namespace
}  // namespace openreg
