// The driver once it has been started: everything that exists once per process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "activity.h"
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

// What a piece of work is, for the record.
struct Launch {
  oregActivityKind kind;
  oregStream_t handle;  // of its stream, or null
  std::size_t bytes = 0;
  oregMemcpyKind copyKind = oregMemcpyHostToHost;
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

  // Runs work in the order of the stream: on this thread if it can be and OPENREG_LAUNCH does not
  // say otherwise.
  template <typename Work>
  void launch(Stream& stream, const Launch& launch, Work work) const {
    if (launchMode == oregLaunchAsync) return queue(stream, launch, std::move(work));
    if (!Activity::isWanted()) return stream.submit(work);
    stream.submit(recorded(stream, launch, std::move(work)));
  }

  // Leaves the work to the stream's worker.
  template <typename Work>
  void queue(Stream& stream, const Launch& launch, Work work) const {
    if (!Activity::isWanted()) return stream.queue(std::move(work));
    stream.queue(recorded(stream, launch, std::move(work)));
  }

  Activity activity(const Stream& stream, const Launch& launch) const {
    return {launch.kind, stream.device(),
            launch.handle != nullptr ? launch.handle : devices[currentDevice]->defaultStreamHandle,
            launch.bytes, launch.copyKind};
  }

  const oregLaunchMode launchMode;
  const Windows windows;
  HostMemory hostMemory;
  HandleTable<Stream, oregStream_t> streams{"stream", 1};
  HandleTable<Event, oregEvent_t> events{"event", 2};
  std::vector<std::unique_ptr<Device>> devices;

 private:
  template <typename Work>
  auto recorded(const Stream& stream, const Launch& launch, Work work) const {
    return [activity = this->activity(stream, launch), &stream, work = std::move(work)]() mutable {
      // A delay counts from when the stream came to it, other work from when it starts to run.
      activity.begin(activity.kind() == oregActivityDelay
                         ? std::chrono::steady_clock::now() - stream.reachedAt()
                         : std::chrono::nanoseconds{});
      const oregError_t result = work();
      activity.end();
      return result;
    };
  }

  explicit Driver(const Config& config);
  static Driver& start();
  void stopWorkers() const;

  [[gnu::constructor]] static void registerForkHandlers();

  // Never deleted: workers and other libraries' exit code may use it until the process ends.
  static std::atomic<Driver*> instance_;
  static std::atomic<bool> forked_;
};

}  // namespace openreg
