// Creation of tensors: memory only, no kernel runs.
#include "kernels/factories.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <torch/library.h>

#include "runtime/allocator.h"
#include "runtime/device.h"

namespace openreg {

c10::DeviceIndex checked_options(std::optional<c10::Layout> layout,
                                 std::optional<c10::Device> device,
                                 std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(c10::kStrided) == c10::kStrided,
                              "Only strided tensors can be made with empty() on ",
                              c10::get_privateuse1_backend(), ", not ", *layout, ".");
  return checked_index(device.has_value() ? device->index() : -1);
}

namespace {

constexpr c10::DispatchKeySet kDeviceKeys{c10::DispatchKey::PrivateUse1};

// torch.use_deterministic_algorithms: uninitialised memory is filled with NaN or the largest
// number.
at::Tensor deterministic(at::Tensor tensor) {
  const at::Context& context = at::globalContext();
  if (C10_UNLIKELY(context.deterministicAlgorithms() &&
                   context.deterministicFillUninitializedMemory())) {
    at::native::fill_empty_deterministic_(tensor);
  }
  return tensor;
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                 std::optional<bool> pin_memory, std::optional<at::MemoryFormat> memory_format) {
  const DeviceScope scope(checked_options(layout, device, pin_memory));
  return deterministic(at::detail::empty_generic(size, &device_allocator(), kDeviceKeys,
                                                 c10::dtype_or_default(dtype), memory_format));
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<c10::Layout> layout,
                         std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  const DeviceScope scope(checked_options(layout, device, pin_memory));
  return deterministic(at::detail::empty_strided_generic(
      size, stride, &device_allocator(), kDeviceKeys, c10::dtype_or_default(dtype)));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
}

}  // namespace
}  // namespace openreg
