#pragma once

namespace openreg {

// Registers the casts of autocast with PyTorch. Once per process, before the first use of the
// device.
void register_casts();

}  // namespace openreg
