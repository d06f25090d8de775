#include "event.h"

#include <chrono>

#include "driver.h"
#include "error.h"

using namespace openreg;

oregError_t oregEventCreateWithFlags(oregEvent_t* event, unsigned flags) {
  return guarded([&] {
    requireResult(event, "event");
    if ((flags & ~oregEventEnableTiming) != 0) {
      fail(oregErrorInvalidValue, "the flags %#x are not oregEventDefault or oregEventEnableTiming",
           flags);
    }
    *event = Driver::get().events.create([flags](Event& created) {
      created.initialize(currentDevice, (flags & oregEventEnableTiming) != 0);
    });
  });
}

oregError_t oregEventDestroy(oregEvent_t handle) {
  return guarded([&] {
    auto& events = Driver::get().events;
    events.retire(handle).setPoint(nullptr);  // what waits for the point keeps it
    events.recycle(handle);
  });
}

oregError_t oregEventRecord(oregEvent_t handle, oregStream_t streamHandle) {
  return guarded([&] {
    const Driver& driver = Driver::get();
    Event& event = driver.events.find(handle);
    Stream& stream = driver.stream(streamHandle);
    if (event.device() != stream.device()) {
      fail(oregErrorInvalidResourceHandle,
           "an event of device %d cannot be recorded on a stream of device %d", event.device(),
           stream.device());
    }
    auto point = std::make_shared<Completion>(stream, event.isTimed());
    stream.mark(point);
    event.setPoint(std::move(point));
  });
}

oregError_t oregEventQuery(oregEvent_t handle) {
  return guarded([&] {
    const auto point = Driver::get().events.find(handle).point();
    return point == nullptr || point->isDone() ? oregSuccess : oregErrorNotReady;
  });
}

oregError_t oregEventSynchronize(oregEvent_t handle) {
  return guarded([&] {
    if (const auto point = Driver::get().events.find(handle).point()) point->wait();
  });
}

oregError_t oregEventElapsedTime(float* milliseconds, oregEvent_t start, oregEvent_t end) {
  return guarded([&] {
    requireResult(milliseconds, "milliseconds");
    const Driver& driver = Driver::get();
    const Event& first = driver.events.find(start);
    const Event& second = driver.events.find(end);
    if (!first.isTimed() || !second.isTimed()) {
      fail(oregErrorInvalidResourceHandle,
           "the %s event measures no time: create it with oregEventEnableTiming",
           first.isTimed() ? "end" : "start");
    }
    if (first.device() != second.device()) {
      fail(oregErrorInvalidResourceHandle,
           "the events are of devices %d and %d, whose clocks cannot be compared", first.device(),
           second.device());
    }
    const auto from = first.point();
    const auto to = second.point();
    if (from == nullptr || to == nullptr) {
      fail(oregErrorInvalidResourceHandle, "the %s event was never recorded",
           from == nullptr ? "start" : "end");
    }
    if (!from->isDone() || !to->isDone()) return oregErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(to->time() - from->time()).count();
    return oregSuccess;
  });
}
