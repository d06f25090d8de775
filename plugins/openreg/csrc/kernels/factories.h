// What every factory checks before it makes a tensor.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Layout.h>

#include <optional>

namespace openreg {

// The index of the device that the tensor is to be made on. Throws for a layout other than strided
// and for pinned memory, which the host has and the device has not.
c10::DeviceIndex checked_options(std::optional<c10::Layout> layout,
                                 std::optional<c10::Device> device, std::optional<bool> pin_memory);

}  // namespace openreg
