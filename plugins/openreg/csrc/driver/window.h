// The address windows of the devices.
//
// Two reservations of the same size, device after device in the same order:
//
//   device addresses  | device 0 | device 1 | ...   no access right: a host that dereferences one
//   faults kernel addresses  | device 0 | device 1 | ...   readable and writable: where the bytes
//   are
//
// so that one constant distance turns any device pointer into the address at which kernels see the
// byte. Neither costs memory until a kernel writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "config.h"

namespace openreg {

class Windows {
 public:
  // Throws oregErrorInitialization.
  explicit Windows(const Config& config);

  std::uintptr_t deviceBase(int device) const { return base_ + device * bytesPerDevice_; }
  std::ptrdiff_t kernelOffset() const { return kernelOffset_; }

  // The device whose window the pointer is in; nullopt for host memory.
  std::optional<int> deviceOf(const void* pointer) const {
    const std::uintptr_t distance = reinterpret_cast<std::uintptr_t>(pointer) - base_;
    if (distance >= size_) return std::nullopt;
    return static_cast<int>(distance / bytesPerDevice_);
  }

 private:
  std::size_t bytesPerDevice_;
  std::size_t size_;
  std::uintptr_t base_;
  std::ptrdiff_t kernelOffset_;
};

}  // namespace openreg
