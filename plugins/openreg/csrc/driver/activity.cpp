#include "activity.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "driver.h"
#include "error.h"

namespace openreg {
namespace {

struct Subscriber {
  oregActivityCallback_t callback;
  void* argument;
};

// Shared while the callback runs, so that a subscriber can go once it has unsubscribed.
std::shared_mutex subscriberMutex;
Subscriber subscriber{};
constinit std::atomic<bool> wanted{false};

// Plain data of fixed size: other libraries' thread-exit code may still submit work.
struct Correlations {
  static constexpr unsigned kMaxDepth = 64;
  unsigned depth;
  std::uint64_t ids[kMaxDepth];
};
constinit thread_local Correlations correlations{};

std::uint64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::uint64_t innermostCorrelation() {
  const unsigned depth = std::min(correlations.depth, Correlations::kMaxDepth);
  return depth == 0 ? 0 : correlations.ids[depth - 1];
}

}  // namespace

bool Activity::isWanted() { return wanted.load(std::memory_order_relaxed); }

Activity::Activity(oregActivityKind kind, int device, oregStream_t stream, std::size_t bytes,
                   oregMemcpyKind copyKind)
    : record_{kind, device, stream, innermostCorrelation(), bytes, copyKind, 0, 0} {}

void Activity::begin(std::chrono::nanoseconds ago) {
  record_.startNanoseconds = now() - ago.count();
}

void Activity::end() {
  record_.endNanoseconds = now();
  const std::shared_lock lock(subscriberMutex);
  if (subscriber.callback != nullptr) subscriber.callback(&record_, subscriber.argument);
}

}  // namespace openreg

using namespace openreg;

oregError_t oregActivitySubscribe(oregActivityCallback_t callback, void* argument) {
  return guarded([&] {
    if (callback == nullptr) fail(oregErrorInvalidValue, "the activity callback is null");
    const std::lock_guard lock(subscriberMutex);
    if (subscriber.callback != nullptr) {
      fail(oregErrorInvalidValue, "there is a subscriber to activities already, and can be one");
    }
    subscriber = {callback, argument};
    wanted.store(true, std::memory_order_relaxed);
  });
}

oregError_t oregActivityUnsubscribe(void) {
  return guarded([&] {
    // Before the lock, which the callback takes.
    if (const Driver* driver = Driver::getIfStarted()) driver->waitForAllStreams();
    const std::lock_guard lock(subscriberMutex);
    wanted.store(false, std::memory_order_relaxed);
    subscriber = {};
  });
}

oregError_t oregActivityPushCorrelation(uint64_t id) {
  return guarded([&] {
    // What is nested deeper belongs to the last that is known.
    if (correlations.depth < Correlations::kMaxDepth) correlations.ids[correlations.depth] = id;
    ++correlations.depth;
  });
}

oregError_t oregActivityPopCorrelation(void) {
  return guarded([&] {
    if (correlations.depth == 0) {
      fail(oregErrorInvalidValue, "this thread has pushed no correlation that could be popped");
    }
    --correlations.depth;
  });
}
