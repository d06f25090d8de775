// Devices, and the state of the process.
#include <sched.h>

#include <cstdio>
#include <thread>

#include "config.h"
#include "driver.h"
#include "error.h"

namespace openreg {
namespace {

void requireDevice(int device) {
  const int count = config().deviceCount();
  if (device < 0 || device >= count) {
    fail(
        oregErrorInvalidDevice,
        "there is no device %d: this process has %d, numbered from 0 (see OPENREG_DEVICE_COUNT and "
        "OPENREG_VISIBLE_DEVICES)",
        device, count);
  }
}

// Kernels run on the processors that this process may use.
int processorCount() {
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof(processors), &processors) == 0) return CPU_COUNT(&processors);
  return static_cast<int>(std::thread::hardware_concurrency());  // more than cpu_set_t can hold
}

}  // namespace
}  // namespace openreg

using namespace openreg;

oregError_t oregDriverGetVersion(int* version) {
  return guarded([&] {
    requireResult(version, "version");
    *version = OREG_DRIVER_VERSION;
  });
}

oregError_t oregGetDeviceCount(int* count) {
  return guarded([&] {
    requireResult(count, "count");
    *count = config().deviceCount();
  });
}

oregError_t oregGetDevice(int* device) {
  return guarded([&] {
    requireResult(device, "device");
    *device = currentDevice;
  });
}

oregError_t oregSetDevice(int device) {
  return guarded([&] {
    requireDevice(device);
    currentDevice = device;
  });
}

oregError_t oregGetDeviceProperties(oregDeviceProp* properties, int device) {
  return guarded([&] {
    requireResult(properties, "properties");
    requireDevice(device);
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "OpenReg Simulated Accelerator");
    properties->totalMemory = config().memory;
    properties->multiProcessorCount = processorCount();
    properties->driverVersion = OREG_DRIVER_VERSION;
    properties->ordinal = config().ordinals[device];
  });
}

oregError_t oregDeviceCanAccessPeer(int* canAccess, int device, int peer) {
  return guarded([&] {
    requireResult(canAccess, "canAccess");
    requireDevice(device);
    requireDevice(peer);
    *canAccess = device != peer;  // the memory of all devices is mapped where kernels run
  });
}

oregError_t oregDeviceSynchronize(void) {
  return guarded([&] {
    const Driver& driver = Driver::get();
    const auto forEachOfDevice = [&driver](auto&& visit) {
      driver.streams.forEach([&](Stream& stream) {
        if (stream.device() == currentDevice) visit(stream);
      });
    };
    // All work has finished when an error is reported. The errors of further streams stay for their
    // own synchronization.
    forEachOfDevice([](Stream& stream) { stream.wait(); });
    forEachOfDevice([](Stream& stream) { stream.throwKeptError(); });
  });
}

oregError_t oregDeviceGetDefaultStream(oregStream_t* stream, int device) {
  return guarded([&] {
    requireResult(stream, "stream");
    requireDevice(device);
    *stream = Driver::get().devices[device]->defaultStreamHandle;
  });
}

int oregIsInBadFork(void) { return Driver::isForked(); }

int oregIsInitialized(void) { return Driver::getIfStarted() != nullptr; }
