// One stream: an ordered queue of work, and the thread that runs what the submitting thread could
// not.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "activity.h"
#include "completion.h"
#include "error.h"

namespace openreg {

// At any time at most one party holds a stream: a thread that runs work in place, or the stream's
// worker. Taking hold of an idle stream and letting go of it are one atomic exchange each; only
// when work was queued meanwhile does the holder take the lock, to pass the stream on. No lock is
// held while work runs.
class Stream {
 public:
  using Work = std::function<oregError_t()>;

  void initialize(int device, int priority) {
    device_.store(device, std::memory_order_relaxed);
    priority_ = priority;
  }
  int device() const { return device_.load(std::memory_order_relaxed); }
  int priority() const { return priority_; }

  bool isIdle() const { return state_.load(std::memory_order_acquire) == State::kIdle; }
  bool isHeldByThisThread() const {
    return holder_.load(std::memory_order_relaxed) == thisThread();
  }
  // Whether the calling thread holds any stream.
  static bool isAnyHeldByThisThread() { return heldByThisThread_ > 0; }
  // Of nested pairs; for the holder.
  int depth() const { return depth_; }

  // Runs the work in the order of the stream: at once if the stream is idle or held by this thread,
  // else later.
  template <typename Callable>
  void submit(Callable&& work) {
    if (!try_lock()) return queue(std::forward<Callable>(work));
    const std::lock_guard hold(*this, std::adopt_lock);
    run(work);
  }

  // The same, but leaves the work to the worker even if the stream is idle. Both throw
  // oregErrorInitialization if the worker cannot be started.
  void queue(Work work);

  // Completes the point when everything submitted before has finished.
  void mark(std::shared_ptr<Completion> point);

  // Waits until everything submitted before has finished.
  void wait();

  // Throws the first error of the work that ran since the last call, once.
  void throwKeptError();

  // Makes this the error that throwKeptError() will throw, unless there is one already.
  void keepError(oregError_t code, const char* cause);

  // Moves a kept error to another stream, so that it is still reported.
  void yieldErrorTo(Stream& other);

  // A stream can be held with the standard library's guards. lock() returns once everything
  // submitted before has finished; what is submitted later waits for unlock(). The holding thread
  // may nest pairs.
  void lock();
  bool try_lock() {
    const void* self = thisThread();
    if (holder_.load(std::memory_order_relaxed) == self) {
      ++depth_;
      return true;
    }
    State expected = State::kIdle;
    if (!state_.compare_exchange_strong(expected, State::kHeld, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
      return false;
    }
    take(self);
    return true;
  }
  void unlock() {
    if (--depth_ > 0) return;
    drop();
    State expected = State::kHeld;
    if (!state_.compare_exchange_strong(expected, State::kIdle, std::memory_order_release,
                                        std::memory_order_relaxed)) {
      passOn();
    }
  }

  // When the stream came to the queued work that the holder runs: its worker may have woken later.
  std::chrono::steady_clock::time_point reachedAt() const { return reachedAt_; }

  // The kernel that the holder runs, while somebody listens (see activity.h).
  std::optional<Activity>& activity() { return activity_; }

  // When the process exits: no worker takes up work any more. waitForWorker() returns when the
  // present work has finished, or after a time that should do.
  static void stopWorkers() { stopped_.store(true); }
  static bool isStopped() { return stopped_.load(std::memory_order_relaxed); }
  void waitForWorker();

 private:
  enum class State : std::uint32_t {
    kIdle,    // nobody holds it, nothing is queued
    kHeld,    // held, nothing is queued
    kQueued,  // held, and something is queued; entered and left only under mutex_
  };

  struct Item {
    Work work;                          // for the worker; empty in a mark or a hold
    std::shared_ptr<Completion> point;  // of a mark or a hold
    bool takesHold;                     // the thread that waits for the point then holds the stream
  };

  static const void* thisThread() {
    static constinit thread_local char identity;
    return &identity;
  }

  void take(const void* self) {
    holder_.store(self, std::memory_order_relaxed);
    depth_ = 1;
    ++heldByThisThread_;
  }
  void drop() {
    holder_.store(nullptr, std::memory_order_relaxed);
    --heldByThisThread_;
  }

  template <typename Callable>
  void run(Callable& work) {
    try {
      if (const oregError_t error = work(); error != oregSuccess) keepError(error, "");
    } catch (const std::exception& error) {
      keepError(oregErrorLaunchFailure, error.what());
    }
  }

  void enqueue(Item item);
  void passOn();
  void advance();
  void startWorker();
  [[noreturn]] void workerLoop();

  std::atomic<State> state_{State::kIdle};
  std::atomic<oregError_t> error_{oregSuccess};
  std::atomic<const void*> holder_{nullptr};         // thisThread() of the holder
  int depth_ = 0;                                    // of nested begins; the holder's
  std::optional<Activity> activity_;                 // the holder's
  std::chrono::steady_clock::time_point reachedAt_;  // the holder's

  std::atomic<int> device_{0};
  int priority_ = 0;

  std::mutex mutex_;
  std::deque<Item> queue_;
  Work handed_;  // what the worker is to run next
  std::condition_variable handedChanged_;
  bool workerStarted_ = false;
  bool workerIsBusy_ = false;
  std::string errorCause_;

  inline static constinit thread_local int heldByThisThread_ = 0;
  inline static constinit std::atomic<bool> stopped_{false};
};

}  // namespace openreg
