#include "stream.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "driver.h"

namespace openreg {

void Stream::queue(Work work) {
  if (isHeldByThisThread()) {  // a part of the kernel that submits it
    reachedAt_ = std::chrono::steady_clock::now();
    return run(work);
  }
  enqueue({std::move(work), nullptr, false});
}

void Stream::mark(std::shared_ptr<Completion> point) {
  if (isIdle() || isHeldByThisThread()) return point->complete();
  enqueue({nullptr, std::move(point), false});
}

void Stream::wait() {
  if (isIdle() || isHeldByThisThread()) return;
  const auto point = std::make_shared<Completion>(*this);
  enqueue({nullptr, point, false});
  point->wait();
}

void Stream::lock() {
  if (try_lock()) return;
  const auto point = std::make_shared<Completion>(*this);
  enqueue({nullptr, point, true});
  point->wait();
  take(thisThread());
}

// Whatever can fail does so before the queue is changed.
void Stream::enqueue(Item item) {
  const std::lock_guard lock(mutex_);
  if (item.work) startWorker();
  queue_.push_back(std::move(item));
  for (State state = state_.load(std::memory_order_relaxed); state != State::kQueued;) {
    if (state == State::kHeld) {
      // The holder finds the item when it lets go.
      if (state_.compare_exchange_weak(state, State::kQueued, std::memory_order_relaxed)) return;
    } else if (state_.compare_exchange_weak(state, State::kHeld, std::memory_order_acquire)) {
      return advance();
    }
  }
}

void Stream::passOn() {
  const std::lock_guard lock(mutex_);
  advance();
}

// Under mutex_, by the holder: gives the stream to whoever is first in the queue.
void Stream::advance() {
  while (!queue_.empty()) {
    Item item = std::move(queue_.front());
    queue_.pop_front();
    const bool isMark = !item.work && !item.takesHold;
    // Before the point completes: who has waited for the last work must find the stream idle.
    const State last = isMark ? State::kIdle : State::kHeld;
    state_.store(queue_.empty() ? last : State::kQueued, std::memory_order_release);
    if (item.work) {
      handed_ = std::move(item.work);
      reachedAt_ = std::chrono::steady_clock::now();
      handedChanged_.notify_one();
      return;
    }
    const bool isLast = queue_.empty();
    item.point->complete();
    if (item.takesHold || isLast) return;
  }
  state_.store(State::kIdle, std::memory_order_release);
}

void Stream::startWorker() {
  if (workerStarted_) return;
  // Signals are for the program's own threads: handlers may rely on running there.
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  pthread_t worker;
  const int failure = pthread_create(
      &worker, nullptr, [](void* stream) -> void* { static_cast<Stream*>(stream)->workerLoop(); },
      this);
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  if (failure != 0) {
    fail(oregErrorInitialization, "a stream's worker thread could not be started: %s",
         std::strerror(failure));
  }
  pthread_detach(worker);  // never joined: a worker must not keep the process from ending
  workerStarted_ = true;
}

void Stream::workerLoop() {
  pthread_setname_np(pthread_self(), "openreg-stream");
  // Delays end when they should, instead of up to 50 microseconds later.
  prctl(PR_SET_TIMERSLACK, 1UL);
  std::unique_lock lock(mutex_);
  for (;;) {
    handedChanged_.wait(lock, [this] { return handed_ && !isStopped(); });
    Work work = std::exchange(handed_, nullptr);
    workerIsBusy_ = true;
    lock.unlock();
    take(thisThread());
    currentDevice = device();
    run(work);
    work = nullptr;
    drop();
    lock.lock();
    workerIsBusy_ = false;
    if (isStopped()) handedChanged_.notify_all();
    advance();
  }
}

void Stream::waitForWorker() {
  std::unique_lock lock(mutex_);
  // A kernel that never ends must not keep the process from ending.
  handedChanged_.wait_for(lock, std::chrono::seconds(10), [this] { return !workerIsBusy_; });
}

void Stream::keepError(oregError_t code, const char* cause) {
  const std::lock_guard lock(mutex_);
  if (error_.load(std::memory_order_relaxed) != oregSuccess) return;
  errorCause_ = cause;
  error_.store(code, std::memory_order_relaxed);
}

void Stream::throwKeptError() {
  if (error_.load(std::memory_order_relaxed) == oregSuccess) return;
  const std::lock_guard lock(mutex_);
  const oregError_t code = error_.exchange(oregSuccess, std::memory_order_relaxed);
  if (code == oregSuccess) return;  // another thread has reported it
  fail(code, "a kernel that ran earlier on a stream of device %d failed with %s%s%s", device(),
       oregGetErrorName(code), errorCause_.empty() ? "" : ": ", errorCause_.c_str());
}

void Stream::yieldErrorTo(Stream& other) {
  const std::lock_guard lock(mutex_);
  const oregError_t code = error_.exchange(oregSuccess, std::memory_order_relaxed);
  if (code != oregSuccess) other.keepError(code, errorCause_.c_str());
}

namespace {

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -1;
constexpr uint64_t kLongestDelay = uint64_t{3600} * 1'000'000;

}  // namespace
}  // namespace openreg

using namespace openreg;

oregError_t oregDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return guarded([&] {
    requireResult(least, "least");
    requireResult(greatest, "greatest");
    *least = kLeastPriority;
    *greatest = kGreatestPriority;
  });
}

oregError_t oregStreamCreateWithPriority(oregStream_t* stream, int priority) {
  return guarded([&] {
    requireResult(stream, "stream");
    if (priority > kLeastPriority || priority < kGreatestPriority) {
      fail(oregErrorInvalidValue, "the priority %d is not between %d (least) and %d (greatest)",
           priority, kLeastPriority, kGreatestPriority);
    }
    *stream = Driver::get().streams.create(
        [priority](Stream& created) { created.initialize(currentDevice, priority); });
  });
}

oregError_t oregStreamDestroy(oregStream_t handle) {
  return guarded([&] {
    Driver& driver = Driver::get();
    if (handle == nullptr) fail(oregErrorInvalidResourceHandle, "the stream to destroy is null");
    for (const auto& device : driver.devices) {
      if (handle == device->defaultStreamHandle) {
        fail(oregErrorInvalidResourceHandle, "a device's default stream cannot be destroyed");
      }
    }
    if (driver.streams.find(handle).isHeldByThisThread()) {
      fail(oregErrorInvalidValue, "a kernel cannot destroy the stream that it runs on");
    }
    Stream& stream = driver.streams.retire(handle);
    // The last work of the stream gives its slot, with the worker, to a later one.
    stream.submit([&driver, &stream, handle] {
      stream.yieldErrorTo(driver.devices[stream.device()]->defaultStream);
      driver.streams.recycle(handle);
      return oregSuccess;
    });
  });
}

oregError_t oregStreamGetPriority(oregStream_t stream, int* priority) {
  return guarded([&] {
    requireResult(priority, "priority");
    *priority = Driver::get().stream(stream).priority();
  });
}

oregError_t oregStreamGetDevice(oregStream_t stream, int* device) {
  return guarded([&] {
    requireResult(device, "device");
    *device = Driver::get().stream(stream).device();
  });
}

oregError_t oregStreamQuery(oregStream_t stream) {
  return guarded(
      [&] { return Driver::get().stream(stream).isIdle() ? oregSuccess : oregErrorNotReady; });
}

oregError_t oregStreamSynchronize(oregStream_t handle) {
  return guarded([&] {
    Stream& stream = Driver::get().stream(handle);
    stream.wait();
    stream.throwKeptError();
  });
}

oregError_t oregStreamDelay(oregStream_t handle, uint64_t microseconds) {
  return guarded([&] {
    const Driver& driver = Driver::get();
    Stream& stream = driver.stream(handle);
    if (microseconds > kLongestDelay) {
      fail(oregErrorInvalidValue, "a delay of %llu microseconds is longer than the longest, %llu",
           static_cast<unsigned long long>(microseconds),
           static_cast<unsigned long long>(kLongestDelay));
    }
    driver.queue(stream, {oregActivityDelay, handle}, [&stream, microseconds] {
      const auto end = stream.reachedAt() + std::chrono::microseconds(microseconds);
      // In short steps, for the sake of a process that exits meanwhile.
      for (auto now = std::chrono::steady_clock::now(); now < end && !Stream::isStopped();
           now = std::chrono::steady_clock::now()) {
        std::this_thread::sleep_until(std::min(end, now + std::chrono::milliseconds(10)));
      }
      return oregSuccess;
    });
  });
}

oregError_t oregStreamWaitEvent(oregStream_t handle, oregEvent_t event) {
  return guarded([&] {
    const Driver& driver = Driver::get();
    Stream& stream = driver.stream(handle);
    const auto point = driver.events.find(event).point();
    // A stream's own order is order enough.
    if (point == nullptr || point->isDone() || &point->stream() == &stream) return;
    if (stream.isHeldByThisThread()) return point->wait();
    stream.queue([point] {
      point->wait();
      return oregSuccess;
    });
  });
}
