#include "runtime/device.h"

#include <torch/csrc/utils/device_lazy_init.h>

#include "runtime/error.h"

namespace openreg {

c10::DeviceIndex device_count() noexcept {
  int count = 0;
  if (oregGetDeviceCount(&count) != oregSuccess) {
    oregGetLastError();
    return 0;
  }
  return static_cast<c10::DeviceIndex>(count);
}

c10::DeviceIndex current_device() {
  int device = 0;
  OREG_CHECK(oregGetDevice(&device));
  return static_cast<c10::DeviceIndex>(device);
}

void set_device(c10::DeviceIndex index) { OREG_CHECK(oregSetDevice(index)); }

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
  const c10::DeviceIndex previous = current_device();
  if (index >= 0 && index != previous) set_device(index);
  return previous;
}

DeviceScope::~DeviceScope() {
  // Cannot fail: the device was current before.
  if (index_ >= 0 && index_ != previous_) oregSetDevice(previous_);
}

void initialize() { torch::utils::device_lazy_init(c10::DeviceType::PrivateUse1); }

void synchronize_device(c10::DeviceIndex index) {
  const DeviceScope scope(index);
  OREG_CHECK(oregDeviceSynchronize());
}

c10::DeviceIndex checked_index(c10::DeviceIndex index) {
  if (index < 0) return current_device();
  // The driver knows the count and has the message.
  if (C10_UNLIKELY(index >= device_count())) set_device(index);
  return index;
}

}  // namespace openreg
