#include "driver.h"

#include <pthread.h>

#include <cstdlib>

#include "error.h"

namespace openreg {

constinit thread_local int currentDevice = 0;
constinit std::atomic<Driver*> Driver::instance_{nullptr};
constinit std::atomic<bool> Driver::forked_{false};

Driver::Driver(const Config& config) : launchMode(config.launchMode), windows(config) {
  for (int index = 0; index < config.deviceCount(); ++index) {
    const oregStream_t handle =
        streams.create([index](Stream& stream) { stream.initialize(index, 0); });
    devices.emplace_back(
        new Device{{index, windows.deviceBase(index), config.memory, windows.kernelOffset()},
                   handle,
                   streams.find(handle)});
  }
}

Driver& Driver::start() {
  if (isForked()) {
    fail(oregErrorForked,
         "the OpenReg device was in use before this process was forked and cannot be used in the "
         "child: start the child with the 'spawn' method instead");
  }
  const Config& settings = config();
  if (settings.deviceCount() == 0) {
    fail(oregErrorNoDevice, "there is no device to use: OPENREG_VISIBLE_DEVICES hides them all");
  }
  const std::lock_guard lock(onceMutex);
  if (Driver* driver = instance_.load(std::memory_order_relaxed)) return *driver;
  Driver* driver = new Driver(settings);
  instance_.store(driver, std::memory_order_release);
  // Kernels use libraries whose static objects are destroyed when the process exits. Those exist
  // already, so that this handler runs before.
  std::atexit([] {
    if (const Driver* started = getIfStarted()) started->stopWorkers();
  });
  return *driver;
}

// Registered when the library is loaded, because a fork must find the handlers even while the
// driver is being started.
void Driver::registerForkHandlers() {
  pthread_atfork([] { onceMutex.lock(); }, [] { onceMutex.unlock(); },
                 [] {
                   // The child has the parent's records, but neither its workers nor its device
                   // memory.
                   if (instance_.exchange(nullptr) != nullptr) forked_ = true;
                   onceMutex.unlock();
                 });
}

void Driver::waitForAllStreams() const {
  streams.forEach([](Stream& stream) { stream.wait(); });
}

void Driver::stopWorkers() const {
  Stream::stopWorkers();
  streams.forEach([](Stream& stream) { stream.waitForWorker(); });
}

}  // namespace openreg
