// Everything at once: eight threads on both devices, each with a stream, memory and events of its
// own, which also wait for each other's events. Every byte is checked.
//
// OREG_STRESS_OPERATIONS sets how many calls of the driver all threads together make at least.
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "support.h"

namespace {

constexpr int kThreads = 8;

std::size_t operations() {
  const char* text = std::getenv("OREG_STRESS_OPERATIONS");
  return text == nullptr ? 40'000 : std::strtoull(text, nullptr, 10);
}

struct Shared {
  std::atomic<oregEvent_t> events[kThreads] = {};
  std::atomic<std::size_t> calls{0};
};

class Worker {
 public:
  Worker(Shared& shared, int index) : shared_(shared), index_(index), random_(index) {}

  void run(std::size_t calls) {
    call(oregSetDevice(index_ % 2));
    stream_ = createStream();
    oregEvent_t event = createEvent();
    shared_.events[index_] = event;
    while (calls_ < calls) {
      round();
      call(oregEventRecord(event, stream_));
      call(oregStreamWaitEvent(stream_, shared_.events[random_() % kThreads]));
    }
    call(oregStreamSynchronize(stream_));
    call(oregStreamDestroy(stream_));
    shared_.calls += calls_;
  }

 private:
  void call(oregError_t result) {
    ++calls_;
    if (result != oregSuccess) ADD_FAILURE() << oregGetLastErrorMessage();
  }

  std::size_t randomSize() {
    const std::size_t largest = std::size_t{1} << (random_() % 20);
    return 1 + random_() % largest;
  }

  // Sends bytes through the device and back, by way of a kernel that changes them.
  void round() {
    const std::size_t size = randomSize();
    void* first = nullptr;
    void* second = nullptr;
    void* pinned = nullptr;
    call(oregMalloc(&first, size));
    call(oregMalloc(&second, size));
    call(oregMallocHost(&pinned, size));
    const auto value = static_cast<unsigned char>(random_());
    std::memset(pinned, value, size);
    if (random_() % 16 == 0) call(oregStreamDelay(stream_, 10));
    call(oregMemcpyAsync(first, pinned, size, oregMemcpyHostToDevice, stream_));
    for (int repeats = static_cast<int>(random_() % 4); repeats > 0; --repeats) {
      call(oregMemcpyAsync(second, first, size, oregMemcpyDeviceToDevice, stream_));
      call(oregMemcpyAsync(first, second, size, oregMemcpyDeviceToDevice, stream_));
    }
    unsigned char* bytes = kernelAddress(first);
    Kernel increment([bytes, size] {
      for (std::size_t i = 0; i < size; ++i) ++bytes[i];
    });
    call(increment.launch(stream_));
    call(oregMemcpyAsync(pinned, first, size, oregMemcpyDeviceToHost, stream_));
    call(oregStreamSynchronize(stream_));
    const auto* result = static_cast<const unsigned char*>(pinned);
    for (std::size_t i = 0; i < size; ++i) {
      if (result[i] != static_cast<unsigned char>(value + 1)) {
        ADD_FAILURE() << "wrong byte " << i << " of " << size;
        break;
      }
    }
    if (random_() % 64 == 0) {
      call(oregFree(first));
      call(oregFreeHost(pinned));
    } else {
      call(oregFreeAsync(first, stream_));
      call(oregFreeHostAsync(pinned, stream_));
    }
    call(oregFreeAsync(second, stream_));
  }

  Shared& shared_;
  const int index_;
  std::minstd_rand random_;
  oregStream_t stream_ = nullptr;
  std::size_t calls_ = 0;
};

class StressTest : public DriverTest {};

TEST_F(StressTest, ManyThreadsOnBothDevices) {
  std::size_t free[2] = {};
  std::size_t total = 0;
  for (int device = 0; device < 2; ++device) {
    EXPECT_OK(oregSetDevice(device));
    EXPECT_OK(oregMemGetInfo(&free[device], &total));
  }
  Shared shared;
  for (auto& event : shared.events) event = createEvent();  // until each thread has its own
  std::vector<oregEvent_t> placeholders(std::begin(shared.events), std::end(shared.events));
  std::vector<std::thread> threads;
  for (int index = 0; index < kThreads; ++index) {
    threads.emplace_back([&shared, index] { Worker(shared, index).run(operations() / kThreads); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(shared.calls, operations());
  for (const oregEvent_t event : placeholders) EXPECT_OK(oregEventDestroy(event));
  for (const auto& event : shared.events) EXPECT_OK(oregEventDestroy(event));
  for (int device = 0; device < 2; ++device) {
    std::size_t now = 0;
    EXPECT_OK(oregSetDevice(device));
    EXPECT_OK(oregDeviceSynchronize());
    EXPECT_OK(oregMemGetInfo(&now, &total));
    EXPECT_EQ(now, free[device]);
  }
}

}  // namespace
