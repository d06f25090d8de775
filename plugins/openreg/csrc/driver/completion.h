// A point in a stream that can be waited for.
#pragma once

#include <atomic>
#include <chrono>

namespace openreg {

class Stream;

class Completion {
 public:
  explicit Completion(const Stream& stream, bool timed = false) : stream_(stream), timed_(timed) {}

  void complete() {
    if (timed_) time_ = std::chrono::steady_clock::now();
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }

  void wait() const {
    while (!isDone()) done_.wait(0, std::memory_order_acquire);
  }

  bool isDone() const { return done_.load(std::memory_order_acquire) != 0; }

  const Stream& stream() const { return stream_; }

  // When the point was reached, if timed and done.
  std::chrono::steady_clock::time_point time() const { return time_; }

 private:
  const Stream& stream_;
  const bool timed_;
  std::chrono::steady_clock::time_point time_;
  std::atomic<int> done_{0};  // int, because that is what the system can wait on directly
};

}  // namespace openreg
