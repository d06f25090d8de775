// The devices and the calling thread's current one.
#pragma once

#include <c10/core/Device.h>

#include <atomic>

namespace openreg {

// Number of devices. Starts nothing and never throws: a driver that cannot answer has no devices.
c10::DeviceIndex device_count() noexcept;

c10::DeviceIndex current_device();

// Throws torch.AcceleratorError ("invalid device ordinal") for an index without a device.
void set_device(c10::DeviceIndex index);

// Makes `index` current and returns the device that was. A negative index changes nothing.
c10::DeviceIndex exchange_device(c10::DeviceIndex index);

// Makes a device current for the life of the object.
class DeviceScope {
 public:
  explicit DeviceScope(c10::DeviceIndex index) : index_(index), previous_(exchange_device(index)) {}
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  c10::DeviceIndex index_;
  c10::DeviceIndex previous_;
};

// Initialises the device as its first use from Python does, if nothing has used it yet: a use from
// C++ may be the first. Takes Python's lock then, so that no other may be held that a thread of
// Python could be waiting for.
inline std::atomic<bool> initialized = false;  // set by torch.openreg's initialisation
void initialize();
inline void ensure_initialized() {
  if (C10_UNLIKELY(!initialized.load(std::memory_order_acquire))) initialize();
}

// Waits for all streams of the device; the current device stays as it is.
void synchronize_device(c10::DeviceIndex index);

// The index itself, or the current device's for -1. Throws for an index without a device.
c10::DeviceIndex checked_index(c10::DeviceIndex index);

inline c10::Device device_at(c10::DeviceIndex index) {
  return c10::Device(c10::DeviceType::PrivateUse1, index);
}

}  // namespace openreg
