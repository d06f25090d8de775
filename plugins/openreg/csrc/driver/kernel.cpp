// Running kernels.
#include "driver.h"
#include "error.h"

using namespace openreg;

oregError_t oregGetKernelOffset(ptrdiff_t* offset) {
  return guarded([&] {
    requireResult(offset, "offset");
    *offset = Driver::get().windows.kernelOffset();
  });
}

oregError_t oregLaunch(oregKernel_t kernel, void* argument, oregStream_t stream) {
  return guarded([&] {
    if (kernel == nullptr) fail(oregErrorInvalidValue, "the kernel to launch is null");
    Driver::get().stream(stream).submit([kernel, argument] { return kernel(argument); });
  });
}

oregError_t oregKernelBegin(oregStream_t stream) {
  return guarded([&] { Driver::get().stream(stream).lock(); });
}

oregError_t oregKernelEnd(oregStream_t handle) {
  return guarded([&] {
    const Driver& driver = Driver::get();
    // A stream that was destroyed meanwhile must still be let go.
    Stream& stream = handle == nullptr ? driver.stream(handle) : driver.streams.findRetired(handle);
    if (!stream.isHeldByThisThread()) {
      fail(oregErrorInvalidValue,
           "this thread has no open oregKernelBegin on that stream of device %d", stream.device());
    }
    stream.unlock();
  });
}
