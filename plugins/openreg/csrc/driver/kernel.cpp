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

oregError_t oregGetLaunchMode(oregLaunchMode* mode) {
  return guarded([&] {
    requireResult(mode, "mode");
    *mode = config().launchMode;
  });
}

int oregIsInKernel(void) { return Stream::isAnyHeldByThisThread(); }

oregError_t oregLaunch(oregKernel_t kernel, void* argument, oregStream_t stream) {
  return guarded([&] {
    if (kernel == nullptr) fail(oregErrorInvalidValue, "the kernel to launch is null");
    const Driver& driver = Driver::get();
    driver.launch(driver.stream(stream), {oregActivityKernel, stream},
                  [kernel, argument] { return kernel(argument); });
  });
}

oregError_t oregKernelBegin(oregStream_t stream) {
  return guarded([&] {
    const Driver& driver = Driver::get();
    Stream& held = driver.stream(stream);
    held.lock();
    if (Activity::isWanted() && held.depth() == 1) [[unlikely]] {
      held.activity().emplace(driver.activity(held, {oregActivityKernel, stream}));
      held.activity()->begin();
    }
  });
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
    if (stream.activity() && stream.depth() == 1) [[unlikely]] {
      stream.activity()->end();
      stream.activity().reset();
    }
    stream.unlock();
  });
}
