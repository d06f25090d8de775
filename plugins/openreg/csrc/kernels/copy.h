#pragma once

#include <ATen/core/Tensor.h>

namespace openreg {

// aten::copy_ between any two of: the host, this device, another of these devices.
at::Tensor& copy_(at::Tensor& self, const at::Tensor& src, bool non_blocking);

}  // namespace openreg
