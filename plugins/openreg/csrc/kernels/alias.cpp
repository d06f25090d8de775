#include "kernels/alias.h"

#include <ATen/core/DeprecatedTypeProperties.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/TensorImpl.h>

#include "kernels/kernel_memory.h"
#include "kernels/layouts.h"
#include "runtime/device.h"
#include "runtime/device_cache.h"
#include "runtime/error.h"
#include "runtime/stream.h"

namespace openreg {

namespace {

constexpr c10::DispatchKeySet kCpu{c10::DispatchKey::CPU};
constexpr c10::DispatchKeySet kDevice{c10::DispatchKey::PrivateUse1};
// Of a tensor of zeros without bytes, which kernels have to know.
constexpr c10::DispatchKeySet kZeros{c10::DispatchKey::ZeroTensor};

}  // namespace

at::Tensor make_alias(const at::Tensor& tensor) {
  const c10::TensorImpl& source = *tensor.unsafeGetTensorImpl();
  if (C10_UNLIKELY(!source.key_set().has(c10::DispatchKey::Dense))) {
    auto alias = alias_over(tensor, kernel_storage(source.unsafe_storage()));
    if (tensor.is_quantized()) {
      alias.unsafeGetTensorImpl()->set_sizes_and_strides(source.sizes(), source.strides(),
                                                         source.storage_offset());
    }
    return alias;
  }
  auto alias = at::detail::make_tensor<c10::TensorImpl>(
      kernel_storage(source.unsafe_storage()), kCpu | (source.key_set() & kZeros), source.dtype());
  c10::TensorImpl* impl = alias.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(source.sizes(), source.strides(), source.storage_offset());
  if (C10_UNLIKELY(source.is_conj())) impl->_set_conj(true);
  if (C10_UNLIKELY(source.is_neg())) impl->_set_neg(true);
  if (C10_UNLIKELY(source.is_wrapped_number())) impl->set_wrapped_number(true);
  return alias;
}

namespace {

// What TensorImpl adds to the keys of a tensor made outside inference mode.
const c10::DispatchKeySet kAliasKeys =
    kCpu | c10::getAutogradRelatedKeySetFromBackend(c10::BackendComponent::CPUBit) |
    c10::getAutocastRelatedKeySetFromBackend(c10::BackendComponent::CPUBit);
constexpr c10::DispatchKeySet kStateKeys{c10::DispatchKey::ZeroTensor, c10::DispatchKey::Conjugate,
                                         c10::DispatchKey::Negative};

// The alias that an earlier call has left with the tensor's block, brought to the tensor's shape;
// undefined if there is none that fits. A new one for each argument of each call would be a quarter
// to a third of what a small operator takes longer than on the CPU.
at::Tensor spare_alias(const c10::TensorImpl& source) {
  if (C10_UNLIKELY(!source.key_set().has(c10::DispatchKey::Dense) || source.is_wrapped_number()))
    return {};
  KernelView* view = kernel_view(source.unsafe_storage());
  if (view == nullptr) return {};
  // Of two threads, only one gets it.
  c10::TensorImpl* const spare = view->spare_alias.exchange(nullptr, std::memory_order_acquire);
  if (spare == nullptr) return {};
  auto alias =
      at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim(spare));
  if (spare->dtype() != source.dtype() ||
      spare->key_set() != (kAliasKeys | (source.key_set() & kStateKeys))) {
    return {};
  }
  if (spare->sizes() != source.sizes() || spare->strides() != source.strides() ||
      spare->storage_offset() != source.storage_offset()) {
    spare->set_sizes_and_strides(source.sizes(), source.strides(), source.storage_offset());
  }
  return alias;
}

// Leaves the alias for the next call, if nothing tells it from a new one. It takes the place of
// what is there: of the same tensor in two shapes, the one that was used last.
void leave_spare_alias(at::Tensor alias, const c10::TensorImpl& source) {
  c10::TensorImpl& impl = *alias.unsafeGetTensorImpl();
  if (alias.use_count() != 1 || impl.key_set() - kStateKeys != kAliasKeys ||
      impl.pyobj_slot()->load_pyobj() != nullptr || impl.autograd_meta() != nullptr ||
      impl.is_wrapped_number() || impl.version_counter().current_version() != 0) {
    return;
  }
  KernelView* view = kernel_view(source.unsafe_storage());
  if (view == nullptr || impl.unsafe_storage().unsafeGetStorageImpl() != view->storage.get())
    return;
  c10::TensorImpl* const before =
      view->spare_alias.exchange(alias.unsafeReleaseTensorImpl(), std::memory_order_acq_rel);
  if (before != nullptr) c10::raw::intrusive_ptr::decref(before);
}

}  // namespace

KernelScope::KernelScope(c10::DeviceIndex device, c10::DeviceIndex memory)
    : stream_(oregIsInKernel() != 0 ? nullptr : current_driver_stream(device)), device_(device) {
  if (stream_ != nullptr) {
    cache_of(device_).kernel_begins();
    const oregError_t error = oregKernelBegin(stream_);
    if (C10_UNLIKELY(error != oregSuccess)) cache_of(device_).kernel_ends();
    OREG_CHECK(error);
  }
  outer_memory_ = exchange_kernel_memory(memory);
}

KernelScope::~KernelScope() {
  exchange_kernel_memory(outer_memory_);
  if (stream_ != nullptr) {
    oregKernelEnd(stream_);  // cannot fail: this thread holds the stream
    cache_of(device_).kernel_ends();
  }
}

namespace {

// A device tensor over the storage, with the result's shape.
at::Tensor view_of(const c10::Storage& storage, const c10::TensorImpl& result) {
  auto view = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), kDevice | (result.key_set() & kZeros), result.dtype());
  c10::TensorImpl* impl = view.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(result.sizes(), result.strides(), result.storage_offset());
  if (result.is_conj()) impl->_set_conj(true);
  if (result.is_neg()) impl->_set_neg(true);
  return view;
}

// Gives a result of the kernel, of whatever layout, the device's storage and keys.
void move_to(c10::TensorImpl& result, const c10::Storage& storage) {
  result.set_storage_keep_dtype(storage);  // takes the device from the storage
  result._change_backend_component_keys(storage.device());
}

// The kernel has written its result to host memory: it came from a thread or a library with memory
// of its own.
at::Tensor copy_to_device(const at::Tensor& result, c10::DeviceIndex device) {
  auto copy = at::empty_strided(result.sizes(), result.strides(),
                                result.options().device(device_at(device)));
  return copy.copy_(result);
}

}  // namespace

AliasCall::~AliasCall() {
  if (C10_UNLIKELY(scope_.has_value())) {
    // The kernel has thrown. What it resized before is resized, as on the CPU.
    try {
      finish();
    } catch (const std::exception& error) {
      TORCH_WARN("While another error was handled: ", error.what());
    }
  }
  for (Argument& argument : arguments_) {
    leave_spare_alias(std::move(argument.alias), *argument.original);
  }
}

at::Tensor AliasCall::alias(const at::Tensor& tensor) { return add(tensor, nullptr); }
at::Tensor AliasCall::alias_mutable(at::Tensor& tensor) { return add(tensor, &tensor); }

c10::List<std::optional<at::Tensor>> AliasCall::alias_indices(
    const c10::List<std::optional<at::Tensor>>& indices) {
  c10::TensorImpl* const host_tensor = host_tensor_;
  c10::List<std::optional<at::Tensor>> aliases;
  aliases.reserve(indices.size());
  for (const std::optional<at::Tensor> index : indices) {
    aliases.push_back(index.has_value() ? std::optional<at::Tensor>(alias(keep(*index)))
                                        : std::nullopt);
  }
  host_tensor_ = host_tensor;
  return aliases;
}

at::Tensor AliasCall::add(const at::Tensor& tensor, at::Tensor* reference) {
  if (!tensor.defined()) return tensor;
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (C10_UNLIKELY(!impl->is_privateuseone())) {
    if (reference != nullptr) host_mutable_ = impl;
    if (impl->dim() > 0) host_tensor_ = impl;
    return tensor;
  }
  // The same tensor twice is the same alias twice: kernels compare their arguments.
  for (Argument& argument : arguments_) {
    if (argument.original == impl) {
      if (reference != nullptr) argument.reference = reference;
      return argument.alias;
    }
  }
  const c10::DeviceIndex device = impl->device().index();
  if (device_ < 0) device_ = device;
  if (device_ != device) other_device_ = device;
  at::Tensor alias;
  if (C10_LIKELY(impl->has_storage())) {
    alias = spare_alias(*impl);
    if (!alias.defined()) alias = make_alias(tensor);
  } else {
    alias = alias_sparse(*this, tensor);
  }
  arguments_.push_back({impl, reference, std::move(alias)});
  return arguments_.back().alias;
}

void AliasCall::begin() {
  if (device_ < 0) device_ = current_device();
  // An operator that makes a device tensor of host tensors has no device tensor among its
  // arguments.
  if (C10_UNLIKELY(!arguments_.empty() &&
                   (other_device_ >= 0 || host_tensor_ != nullptr || host_mutable_ != nullptr))) {
    const c10::TensorImpl* host = host_mutable_ != nullptr ? host_mutable_ : host_tensor_;
    TORCH_CHECK(false,
                "Expected all tensors to be on the same device, but found at least two devices, ",
                device_at(device_), " and ",
                other_device_ >= 0 ? device_at(other_device_) : host->device(), "!");
  }
  scope_.emplace(device_, host_results_ ? c10::DeviceIndex{-1} : device_);
}

void AliasCall::finish() {
  scope_.reset();
  for (const Argument& argument : arguments_) {
    // A kernel that wrote through autograd's bookkeeping has told the alias: tell the tensor.
    const auto& version = argument.alias.unsafeGetTensorImpl()->version_counter();
    if (C10_UNLIKELY(version.enabled() && version.current_version() > 0)) {
      argument.original->bump_version();
    }
    if (argument.reference == nullptr) continue;
    if (C10_UNLIKELY(!argument.original->has_storage())) {
      update_sparse(*this, *argument.original, argument.alias);
      continue;
    }
    const c10::TensorImpl& alias = *argument.alias.unsafeGetTensorImpl();
    c10::TensorImpl& original = *argument.original;
    // A kernel may leave the conjugation or the sign of its output to whoever reads it.
    if (C10_UNLIKELY(alias.is_conj() != original.is_conj())) original._set_conj(alias.is_conj());
    if (C10_UNLIKELY(alias.is_neg() != original.is_neg())) original._set_neg(alias.is_neg());
    take_device_memory(*alias.unsafe_storage().unsafeGetStorageImpl(),
                       *original.unsafe_storage().unsafeGetStorageImpl());
    if (C10_UNLIKELY(alias.sizes() != original.sizes() || alias.strides() != original.strides() ||
                     alias.storage_offset() != original.storage_offset())) {
      original.set_sizes_and_strides(alias.sizes(), alias.strides(), alias.storage_offset());
    }
  }
}

at::Tensor AliasCall::wrap(at::Tensor result) {
  if (!result.defined() || !result.is_cpu()) return result;
  for (const Argument& argument : arguments_) {
    if (argument.alias.is_same(result)) {
      return at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(
          argument.original));
    }
  }
  if (C10_UNLIKELY(host_results_)) return result;
  return result.unsafeGetTensorImpl()->has_storage() ? wrap_storage(std::move(result))
                                                     : wrap_sparse(*this, result);
}

at::Tensor AliasCall::wrap_storage(at::Tensor result) {
  c10::TensorImpl& impl = *result.unsafeGetTensorImpl();
  c10::StorageImpl* storage = impl.unsafe_storage().unsafeGetStorageImpl();
  const bool only_here = result.use_count() == 1;
  if (const Argument* argument = argument_with_storage(storage)) {
    if (!only_here) return view_of(argument->original->unsafe_storage(), impl);
    move_to(impl, argument->original->unsafe_storage());
    return result;
  }
  const bool ours = only_here && become_device_storage(*storage, device_);
  if (C10_UNLIKELY(!ours)) return copy_to_device(result, device_);
  move_to(impl, impl.storage());
  return result;
}

at::Tensor AliasCall::wrap_part(const at::Tensor& part) {
  const c10::TensorImpl& impl = *part.unsafeGetTensorImpl();
  c10::StorageImpl* storage = impl.unsafe_storage().unsafeGetStorageImpl();
  if (const Argument* argument = argument_with_storage(storage)) {
    return view_of(argument->original->unsafe_storage(), impl);
  }
  return become_device_storage(*storage, device_) ? view_of(impl.unsafe_storage(), impl)
                                                  : copy_to_device(part, device_);
}

void AliasCall::detach_kept_aliases() {
  for (const Argument& argument : arguments_) {
    if (argument.alias.use_count() == 1 || !argument.original->has_storage()) continue;
    c10::TensorImpl& kept = *argument.alias.unsafeGetTensorImpl();
    const c10::Storage& shared = kept.unsafe_storage();
    c10::Storage copy(c10::Storage::use_byte_size_t(), shared.nbytes(),
                      c10::GetAllocator(c10::DeviceType::CPU), /*resizable=*/true);
    std::memcpy(copy.mutable_data(), shared.data(), shared.nbytes());
    kept.set_storage_keep_dtype(std::move(copy));
  }
}

const AliasCall::Argument* AliasCall::argument_with_storage(const c10::StorageImpl* storage) const {
  for (const Argument& argument : arguments_) {
    const c10::TensorImpl& alias = *argument.alias.unsafeGetTensorImpl();
    if (alias.has_storage() && alias.unsafe_storage().unsafeGetStorageImpl() == storage)
      return &argument;
  }
  return nullptr;
}

bool AliasCall::is_alias(const at::Tensor& result) const {
  return std::any_of(arguments_.begin(), arguments_.end(),
                     [&](const Argument& argument) { return argument.alias.is_same(result); });
}

at::Tensor& AliasCall::original_of(const at::Tensor& result) {
  for (const Argument& argument : arguments_) {
    if (argument.reference != nullptr && argument.alias.is_same(result)) return *argument.reference;
  }
  TORCH_INTERNAL_ASSERT(false, "the kernel returned a reference to none of its arguments");
}

}  // namespace openreg
