#include <cstdint>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "support.h"

namespace {

class StreamTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    stream_ = createStream();
  }
  void TearDown() override {
    EXPECT_OK(oregStreamDestroy(stream_));
    DriverTest::TearDown();
  }
  oregStream_t stream_ = nullptr;
};

TEST_F(StreamTest, DefaultStreamsBelongToTheirDevices) {
  oregStream_t streams[2] = {};
  for (int device = 0; device < 2; ++device) {
    EXPECT_OK(oregDeviceGetDefaultStream(&streams[device], device));
    int found = -1;
    EXPECT_OK(oregStreamGetDevice(streams[device], &found));
    EXPECT_EQ(found, device);
    EXPECT_OK(oregSetDevice(device));
    found = -1;
    EXPECT_OK(oregStreamGetDevice(nullptr, &found));  // null: of the current device
    EXPECT_EQ(found, device);
  }
  EXPECT_NE(streams[0], streams[1]);
  const Occupied occupied(streams[1]);
  EXPECT_EQ(oregStreamQuery(nullptr), oregErrorNotReady);
  EXPECT_OK(oregSetDevice(0));
  EXPECT_EQ(oregStreamQuery(nullptr), oregSuccess);
}

TEST_F(StreamTest, CreatedOnTheCurrentDeviceWithPriority) {
  int least = 1;
  int greatest = 1;
  EXPECT_OK(oregDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 0);
  EXPECT_EQ(greatest, -1);
  EXPECT_OK(oregSetDevice(1));
  const oregStream_t urgent = createStream(-1);
  EXPECT_OK(oregSetDevice(0));
  int priority = 1;
  int device = -1;
  EXPECT_OK(oregStreamGetPriority(urgent, &priority));
  EXPECT_OK(oregStreamGetDevice(urgent, &device));
  EXPECT_EQ(priority, -1);
  EXPECT_EQ(device, 1);
  EXPECT_OK(oregStreamDestroy(urgent));
  oregStream_t none = nullptr;
  for (const int wrong : {1, -2}) {
    EXPECT_ERROR(oregErrorInvalidValue, "priority " + std::to_string(wrong),
                 oregStreamCreateWithPriority(&none, wrong));
  }
  EXPECT_EQ(none, nullptr);
}

TEST_F(StreamTest, IdleStreamRunsWorkOnTheCallingThread) {
  std::thread::id runner;
  Kernel kernel([&] { runner = std::this_thread::get_id(); });
  EXPECT_OK(kernel.launch(stream_));
  EXPECT_EQ(runner, std::this_thread::get_id());
  EXPECT_EQ(oregStreamQuery(stream_), oregSuccess);
}

TEST_F(StreamTest, BusyStreamQueuesWorkForItsWorker) {
  std::atomic<bool> ran{false};
  std::thread::id runner;
  int device = -1;
  Kernel kernel([&] {
    runner = std::this_thread::get_id();
    oregGetDevice(&device);
    ran = true;
  });
  EXPECT_OK(oregSetDevice(1));
  const oregStream_t stream = createStream();
  {
    const Occupied occupied(stream);
    EXPECT_OK(kernel.launch(stream));
    EXPECT_FALSE(ran);
    EXPECT_EQ(oregStreamQuery(stream), oregErrorNotReady);
    EXPECT_EQ(oregPeekAtLastError(), oregSuccess);  // not ready is an answer, no error
  }
  EXPECT_OK(oregStreamSynchronize(stream));
  EXPECT_EQ(oregStreamQuery(stream), oregSuccess);
  EXPECT_TRUE(ran);
  EXPECT_NE(runner, std::this_thread::get_id());
  EXPECT_EQ(device, 1);
  EXPECT_OK(oregStreamDestroy(stream));
}

TEST_F(StreamTest, WorkRunsInTheOrderOfSubmission) {
  std::vector<int> order;
  std::vector<Kernel> kernels;
  for (int i = 0; i < 2000; ++i) kernels.emplace_back([&order, i] { order.push_back(i); });
  {
    const Occupied occupied(stream_);
    for (int i = 0; i < 1000; ++i) EXPECT_OK(kernels[i].launch(stream_));
  }
  // The worker is draining the queue, so these are queued, or run in place when it is done.
  for (int i = 1000; i < 2000; ++i) EXPECT_OK(kernels[i].launch(stream_));
  EXPECT_OK(oregStreamSynchronize(stream_));
  std::vector<int> expected(2000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_F(StreamTest, StreamsOverlap) {
  const oregStream_t other = createStream();
  std::atomic<bool> here{false};
  std::atomic<bool> there{false};
  const auto meet = [](std::atomic<bool>& mine, std::atomic<bool>& theirs) {
    mine = true;
    mine.notify_all();
    theirs.wait(false);
  };
  Kernel first([&] { meet(here, there); });
  Kernel second([&] { meet(there, here); });
  {
    const Occupied occupied1(stream_);
    const Occupied occupied2(other);
    EXPECT_OK(first.launch(stream_));
    EXPECT_OK(second.launch(other));
  }
  // Each ends only if the other runs at the same time.
  EXPECT_OK(oregDeviceSynchronize());
  EXPECT_TRUE(here && there);
  EXPECT_OK(oregStreamDestroy(other));
}

TEST_F(StreamTest, ThreadsOnOneStreamAreSerialized) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 2000;
  int counter = 0;  // not atomic: only the stream keeps the threads apart
  Kernel increment([&] { ++counter; });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        EXPECT_OK(increment.launch(stream_));
        EXPECT_OK(oregKernelBegin(stream_));
        ++counter;
        EXPECT_OK(oregKernelEnd(stream_));
        if (round % 8 == 0) {
          EXPECT_OK(oregStreamSynchronize(stream_));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_OK(oregStreamSynchronize(stream_));
  EXPECT_EQ(counter, 2 * kThreads * kRounds);
}

TEST_F(StreamTest, KernelBeginWaitsForEarlierWorkAndHoldsBackLater) {
  std::vector<int> order;
  Kernel earlier([&] { order.push_back(1); });
  Kernel later([&] { order.push_back(3); });
  Occupied occupied(stream_);
  EXPECT_OK(earlier.launch(stream_));
  std::thread other([&] {
    EXPECT_OK(oregKernelBegin(stream_));
    std::thread([&] { EXPECT_OK(later.launch(stream_)); }).join();
    order.push_back(2);
    EXPECT_OK(oregKernelEnd(stream_));
  });
  giveTimeToGoWrong();
  occupied.release();
  other.join();
  EXPECT_OK(oregStreamSynchronize(stream_));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(StreamTest, KernelPairsNest) {
  EXPECT_OK(oregKernelBegin(stream_));
  EXPECT_OK(oregKernelBegin(stream_));
  EXPECT_OK(oregKernelEnd(stream_));
  EXPECT_EQ(oregStreamQuery(stream_), oregErrorNotReady);
  EXPECT_OK(oregKernelEnd(stream_));
  EXPECT_EQ(oregStreamQuery(stream_), oregSuccess);
  EXPECT_ERROR(oregErrorInvalidValue, "no open oregKernelBegin", oregKernelEnd(stream_));
}

TEST_F(StreamTest, KernelEndOfAnotherThreadIsRefused) {
  const Occupied occupied(stream_);
  EXPECT_ERROR(oregErrorInvalidValue, "no open oregKernelBegin", oregKernelEnd(stream_));
  EXPECT_EQ(oregStreamQuery(stream_), oregErrorNotReady);
}

TEST_F(StreamTest, WhatAKernelSubmitsToItsOwnStreamIsPartOfIt) {
  char* device = static_cast<char*>(allocate(8));
  const oregEvent_t event = createEvent();
  char found = 0;
  Kernel inner([&] { *kernelAddress(device) += 1; });
  Kernel outer([&] {
    EXPECT_OK(oregMemsetAsync(device, 4, 8, stream_));
    EXPECT_OK(inner.launch(stream_));
    EXPECT_OK(oregEventRecord(event, stream_));
    EXPECT_OK(oregEventSynchronize(event));
    EXPECT_OK(oregStreamWaitEvent(stream_, event));
    EXPECT_OK(oregStreamSynchronize(stream_));
    EXPECT_OK(oregDeviceSynchronize());
    EXPECT_OK(oregMemcpyAsync(&found, device, 1, oregMemcpyDeviceToHost, stream_));
  });
  EXPECT_OK(outer.launch(stream_));  // in place
  EXPECT_EQ(found, 5);
  {
    const Occupied occupied(stream_);
    found = 0;
    EXPECT_OK(outer.launch(stream_));  // on the worker
  }
  EXPECT_OK(oregStreamSynchronize(stream_));
  EXPECT_EQ(found, 5);
  EXPECT_OK(oregEventDestroy(event));
  EXPECT_OK(oregFree(device));
}

TEST_F(StreamTest, ErrorsOfWorkAreReportedOnceByTheNextSynchronization) {
  Kernel failing([] { return oregErrorInvalidValue; });
  Kernel failingDifferently([] { return oregErrorMemoryAllocation; });
  EXPECT_OK(failing.launch(stream_));  // in place: the same as when queued
  EXPECT_OK(failingDifferently.launch(stream_));
  EXPECT_EQ(oregStreamQuery(stream_), oregSuccess);
  EXPECT_ERROR(
      oregErrorInvalidValue,
      "a kernel that ran earlier on a stream of device 0 failed with oregErrorInvalidValue",
      oregStreamSynchronize(stream_));
  EXPECT_OK(oregStreamSynchronize(stream_));
  {
    const Occupied occupied(stream_);
    EXPECT_OK(failing.launch(stream_));
  }
  EXPECT_ERROR(oregErrorInvalidValue, "kernel that ran earlier", oregStreamSynchronize(stream_));
  EXPECT_OK(oregStreamSynchronize(stream_));
}

TEST_F(StreamTest, KernelThatThrowsIsALaunchFailure) {
  Kernel throwing([]() -> oregError_t { throw std::runtime_error("shapes differ"); });
  EXPECT_OK(throwing.launch(stream_));
  EXPECT_ERROR(oregErrorLaunchFailure, "oregErrorLaunchFailure: shapes differ",
               oregStreamSynchronize(stream_));
  {
    const Occupied occupied(stream_);
    EXPECT_OK(throwing.launch(stream_));
  }
  EXPECT_ERROR(oregErrorLaunchFailure, "shapes differ", oregStreamSynchronize(stream_));
}

TEST_F(StreamTest, DeviceSynchronizeWaitsForEveryStreamOfItsDevice) {
  const oregStream_t second = createStream();
  EXPECT_OK(oregSetDevice(1));
  const oregStream_t elsewhere = createStream();
  EXPECT_OK(oregSetDevice(0));
  const Occupied occupiedElsewhere(elsewhere);  // must not be waited for
  Kernel failing([] { return oregErrorInvalidValue; });
  std::atomic<int> ran{0};
  Kernel kernel([&] { ++ran; });
  {
    const Occupied occupied(stream_);
    EXPECT_OK(failing.launch(stream_));
    EXPECT_OK(kernel.launch(stream_));
  }
  {
    const Occupied occupied(second);
    EXPECT_OK(failing.launch(second));
    EXPECT_OK(kernel.launch(second));
  }
  EXPECT_ERROR(oregErrorInvalidValue, "kernel that ran earlier", oregDeviceSynchronize());
  EXPECT_EQ(ran, 2);
  EXPECT_ERROR(oregErrorInvalidValue, "kernel that ran earlier", oregDeviceSynchronize());
  EXPECT_OK(oregDeviceSynchronize());
  EXPECT_EQ(oregStreamQuery(elsewhere), oregErrorNotReady);
  EXPECT_OK(oregStreamDestroy(second));
  EXPECT_OK(oregStreamDestroy(elsewhere));
}

TEST_F(StreamTest, DestroyedStreamIsRefusedEverywhere) {
  const oregStream_t stream = createStream();
  const oregEvent_t event = createEvent();
  EXPECT_OK(oregStreamDestroy(stream));
  Kernel kernel([] { FAIL() << "ran on a destroyed stream"; });
  int number = 0;
  const auto expectAllRefused = [&](oregStream_t wrong) {
    const char* text = "no live stream";
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregStreamDestroy(wrong));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregStreamGetPriority(wrong, &number));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregStreamGetDevice(wrong, &number));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregStreamQuery(wrong));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregStreamSynchronize(wrong));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregStreamWaitEvent(wrong, event));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregEventRecord(event, wrong));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, kernel.launch(wrong));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregKernelBegin(wrong));
  };
  expectAllRefused(stream);
  EXPECT_ERROR(oregErrorInvalidValue, "no open oregKernelBegin", oregKernelEnd(stream));
  const oregStream_t reused = createStream();  // in the same place, if a worker has left it by now
  EXPECT_NE(reused, stream);
  expectAllRefused(stream);
  const oregError_t ended = oregKernelEnd(stream);
  EXPECT_TRUE(ended == oregErrorInvalidResourceHandle || ended == oregErrorInvalidValue) << ended;
  // Handles that never were: an event, an address, and bits.
  expectAllRefused(reinterpret_cast<oregStream_t>(event));
  expectAllRefused(reinterpret_cast<oregStream_t>(&number));
  for (const std::uintptr_t bits :
       {~std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{0x1fffffffd}}) {
    expectAllRefused(reinterpret_cast<oregStream_t>(bits));
  }
  EXPECT_OK(oregStreamDestroy(reused));
  EXPECT_OK(oregEventDestroy(event));
}

TEST_F(StreamTest, DefaultStreamsCannotBeDestroyed) {
  oregStream_t stream = nullptr;
  EXPECT_OK(oregDeviceGetDefaultStream(&stream, 1));
  EXPECT_ERROR(oregErrorInvalidResourceHandle, "default stream", oregStreamDestroy(stream));
  EXPECT_ERROR(oregErrorInvalidResourceHandle, "null", oregStreamDestroy(nullptr));
  EXPECT_OK(oregStreamSynchronize(stream));
}

TEST_F(StreamTest, QueuedWorkOfADestroyedStreamStillRunsAndReports) {
  const oregStream_t stream = createStream();
  std::atomic<bool> ran{false};
  Kernel kernel([&] { ran = true; });
  Kernel failing([] { return oregErrorInvalidValue; });
  {
    const Occupied occupied(stream);
    EXPECT_OK(kernel.launch(stream));
    EXPECT_OK(failing.launch(stream));
    EXPECT_OK(oregStreamDestroy(stream));
    EXPECT_FALSE(ran);
  }
  EXPECT_ERROR(oregErrorInvalidValue, "kernel that ran earlier", oregDeviceSynchronize());
  EXPECT_TRUE(ran);
  EXPECT_OK(oregDeviceSynchronize());
}

TEST_F(StreamTest, KernelCannotDestroyItsOwnStream) {
  Kernel kernel(
      [&] { EXPECT_ERROR(oregErrorInvalidValue, "that it runs on", oregStreamDestroy(stream_)); });
  EXPECT_OK(kernel.launch(stream_));
  EXPECT_OK(oregStreamSynchronize(stream_));
}

TEST_F(StreamTest, StreamDestroyedDuringAKernelCanStillBeLetGo) {
  const oregStream_t stream = createStream();
  EXPECT_OK(oregKernelBegin(stream));
  std::thread([&] { EXPECT_OK(oregStreamDestroy(stream)); }).join();
  EXPECT_OK(oregKernelEnd(stream));
  EXPECT_OK(oregDeviceSynchronize());
}

TEST_F(StreamTest, HandlesAreDistinctAndTheirPlacesReused) {
  std::set<oregStream_t> seen;
  for (int round = 0; round < 3; ++round) {
    std::vector<oregStream_t> streams;
    for (int i = 0; i < 200; ++i) {
      streams.push_back(createStream());
      EXPECT_TRUE(seen.insert(streams.back()).second);
    }
    for (const oregStream_t stream : streams) EXPECT_OK(oregStreamDestroy(stream));
  }
}

TEST_F(StreamTest, StreamsCanBeCreatedUsedAndDestroyedConcurrently) {
  std::atomic<int> ran{0};
  Kernel kernel([&] { ++ran; });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_OK(oregSetDevice(i % 2));
      for (int round = 0; round < 200; ++round) {
        const oregStream_t stream = createStream();
        const Occupied occupied(stream);
        EXPECT_OK(kernel.launch(stream));
        EXPECT_OK(kernel.launch(nullptr));
        EXPECT_OK(oregStreamDestroy(stream));
      }
      EXPECT_OK(oregDeviceSynchronize());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int device : {0, 1}) {
    EXPECT_OK(oregSetDevice(device));
    EXPECT_OK(oregDeviceSynchronize());
  }
  EXPECT_EQ(ran, 4 * 200 * 2);
}

TEST_F(StreamTest, DelayIsQueuedAndKeepsTheStreamBusy) {
  EXPECT_OK(oregStreamDelay(stream_, 50'000));
  EXPECT_EQ(oregStreamQuery(stream_), oregErrorNotReady);
  EXPECT_OK(oregStreamSynchronize(stream_));
  EXPECT_EQ(oregStreamQuery(stream_), oregSuccess);
  EXPECT_ERROR(oregErrorInvalidValue, "longer than the longest", oregStreamDelay(stream_, ~0ull));
}

TEST_F(StreamTest, AThreadKnowsThatItRunsAKernel) {
  EXPECT_EQ(oregIsInKernel(), 0);
  int inline_ = -1;
  Kernel kernel([&inline_] { inline_ = oregIsInKernel(); });
  EXPECT_OK(kernel.launch(stream_));
  EXPECT_EQ(inline_, 1);
  std::atomic<int> onWorker = -1;
  Kernel queued([&onWorker] { onWorker = oregIsInKernel(); });
  EXPECT_OK(oregStreamDelay(stream_, 1000));
  EXPECT_OK(queued.launch(stream_));
  EXPECT_OK(oregStreamSynchronize(stream_));
  EXPECT_EQ(onWorker, 1);
  EXPECT_OK(oregKernelBegin(stream_));
  EXPECT_EQ(oregIsInKernel(), 1);
  EXPECT_OK(oregKernelEnd(stream_));
  EXPECT_EQ(oregIsInKernel(), 0);
}

}  // namespace
