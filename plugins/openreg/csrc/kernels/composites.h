#pragma once

namespace openreg {

// PyTorch gives many operators two kernels: a CPU kernel, and a composite one made of other
// operators for devices that have none. Where both exist and no kernel here is better, this
// registers the fallback for the operator, so that the device runs the CPU kernel too, in one step
// and with the CPU's results. Once per process, after all kernels of this library are registered
// and before the first use of the device.
void prefer_cpu_kernels();

}  // namespace openreg
