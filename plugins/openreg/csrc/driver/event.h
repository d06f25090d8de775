#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "completion.h"
#include "openreg.h"

namespace openreg {

// Remembers the point at which it was recorded last. Whoever waits has taken the point of that
// moment, so that an event can be recorded again at any time. Thread-safe.
class Event {
 public:
  void initialize(int device, bool timed) {
    device_ = device;
    timed_ = timed;
    setPoint(nullptr);
  }

  int device() const { return device_; }
  bool isTimed() const { return timed_; }

  // Null if the event was never recorded.
  std::shared_ptr<Completion> point() const {
    const std::lock_guard lock(mutex_);
    return point_;
  }

  void setPoint(std::shared_ptr<Completion> point) {
    const std::lock_guard lock(mutex_);
    point_.swap(point);
  }

 private:
  int device_ = 0;
  bool timed_ = false;
  mutable std::mutex mutex_;
  std::shared_ptr<Completion> point_;
};

}  // namespace openreg
