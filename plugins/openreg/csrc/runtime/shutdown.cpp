#include "runtime/shutdown.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <thread>

#include "openreg.h"
#include "runtime/device.h"

namespace openreg {
namespace {

// Autograd has one thread per device. What it does last for a backward, after the caller has got
// its result, is to release a Python object. It has done so when it takes up the next backward,
// which is this one. On a thread of its own, because a thread that Python knows would give it such
// an object too.
void pass_through_autograd_threads() {
  std::thread([] {
    try {
      for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
        at::zeros({}, at::TensorOptions(device_at(index))).requires_grad_().backward();
      }
    } catch (const std::exception&) {
      // The device cannot be used any more, which concerns nobody now.
    }
  }).join();
}

}  // namespace

void finish_work_before_exit() {
  if (oregIsInitialized() == 0) return;  // also in a forked child
  pass_through_autograd_threads();
  for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
    oregSetDevice(index);
    oregDeviceSynchronize();  // what failed concerns nobody any more
  }
}

}  // namespace openreg
