#pragma once

namespace openreg {

// Registers the device with PyTorch's profiler, where it supplies ProfilerActivity.PrivateUse1.
void register_profiler();

}  // namespace openreg
