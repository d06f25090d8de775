// The driver once it has been started: everything that exists once per process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "arena.h"
#include "config.h"
#include "event.h"
#include "handle_table.h"
#include "host_memory.h"
#include "stream.h"
#include "window.h"

namespace openreg {

// Of the calling thread; in a kernel that a worker runs, the stream's device.
extern constinit thread_local int currentDevice;

struct Device {
  Arena arena;
  oregStream_t defaultStreamHandle;
  Stream& defaultStream;
};

class Driver {
 public:
  // Starts the driver if need be. Throws oregErrorForked in a child forked after that,
  // oregErrorInvalidConfiguration and oregErrorInitialization.
  static Driver& get() {
    Driver* driver = getIfStarted();
    return driver != nullptr ? *driver : start();
  }
  static Driver* getIfStarted() { return instance_.load(std::memory_order_acquire); }
  static bool isForked() { return forked_.load(std::memory_order_relaxed); }

  // Null stands for the default stream of the current device. Throws
  // oregErrorInvalidResourceHandle.
  Stream& stream(oregStream_t handle) const {
    return handle == nullptr ? devices[currentDevice]->defaultStream : streams.find(handle);
  }

  // Waits until what has been submitted to any stream has finished.
  void waitForAllStreams() const;

  const Windows windows;
  HostMemory hostMemory;
  HandleTable<Stream, oregStream_t> streams{"stream", 1};
  HandleTable<Event, oregEvent_t> events{"event", 2};
  std::vector<std::unique_ptr<Device>> devices;

 private:
  explicit Driver(const Config& config);
  static Driver& start();

  [[gnu::constructor]] static void registerForkHandlers();

  // Never deleted: workers and other libraries' exit code may use it until the process ends.
  static std::atomic<Driver*> instance_;
  static std::atomic<bool> forked_;
};

}  // namespace openreg
