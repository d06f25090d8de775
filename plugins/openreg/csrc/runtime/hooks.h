#pragma once

namespace openreg {

// Registers the device's hooks and allocator with PyTorch; once per process, when the module is
// imported.
void register_hooks();

}  // namespace openreg
