#include <chrono>
#include <cstdint>
#include <vector>

#include "support.h"

namespace {

class EventTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    first_ = createStream();
    second_ = createStream();
    event_ = createEvent();
  }
  void TearDown() override {
    EXPECT_OK(oregStreamDestroy(first_));
    EXPECT_OK(oregStreamDestroy(second_));
    EXPECT_OK(oregEventDestroy(event_));
    DriverTest::TearDown();
  }
  oregStream_t first_ = nullptr;
  oregStream_t second_ = nullptr;
  oregEvent_t event_ = nullptr;
};

TEST_F(EventTest, NeverRecordedIsReached) {
  EXPECT_EQ(oregEventQuery(event_), oregSuccess);
  EXPECT_OK(oregEventSynchronize(event_));
  EXPECT_OK(oregStreamWaitEvent(first_, event_));
  EXPECT_EQ(oregStreamQuery(first_), oregSuccess);
}

TEST_F(EventTest, RecordedOnAnIdleStreamIsReached) {
  EXPECT_OK(oregEventRecord(event_, first_));
  EXPECT_EQ(oregEventQuery(event_), oregSuccess);
  EXPECT_OK(oregEventRecord(event_, nullptr));
  EXPECT_OK(oregEventSynchronize(event_));
}

TEST_F(EventTest, CapturesTheTailOfTheStream) {
  bool before = false;
  Kernel earlier([&] { before = true; });
  Occupied occupied(first_);
  EXPECT_OK(earlier.launch(first_));
  EXPECT_OK(oregEventRecord(event_, first_));
  EXPECT_EQ(oregEventQuery(event_), oregErrorNotReady);
  EXPECT_EQ(oregPeekAtLastError(), oregSuccess);
  std::atomic<bool> release{false};
  Kernel later([&] { release.wait(false); });
  EXPECT_OK(later.launch(first_));
  occupied.release();
  EXPECT_OK(oregEventSynchronize(event_));  // although the later kernel runs on
  EXPECT_TRUE(before);
  EXPECT_EQ(oregEventQuery(event_), oregSuccess);
  EXPECT_EQ(oregStreamQuery(first_), oregErrorNotReady);
  release = true;
  release.notify_all();
  EXPECT_OK(oregStreamSynchronize(first_));
}

TEST_F(EventTest, StreamWaitsForAnotherWithoutBlockingTheCaller) {
  int value = 0;  // not atomic: the event orders the two streams
  Kernel write([&] { value = 1; });
  int found = -1;
  Kernel read([&] { found = value; });
  {
    const Occupied occupied(first_);
    EXPECT_OK(write.launch(first_));
    EXPECT_OK(oregEventRecord(event_, first_));
    EXPECT_OK(oregStreamWaitEvent(second_, event_));
    EXPECT_OK(read.launch(second_));
    EXPECT_EQ(oregStreamQuery(second_), oregErrorNotReady);
  }
  EXPECT_OK(oregStreamSynchronize(second_));
  EXPECT_EQ(found, 1);
}

TEST_F(EventTest, OrdersStreamsOfDifferentDevices) {
  EXPECT_OK(oregSetDevice(1));
  const oregStream_t remote = createStream();
  int value = 0;
  Kernel write([&] { value = 7; });
  int found = -1;
  Kernel read([&] { found = value; });
  {
    const Occupied occupied(first_);
    EXPECT_OK(write.launch(first_));
    EXPECT_OK(oregEventRecord(event_, first_));
    EXPECT_OK(oregStreamWaitEvent(remote, event_));
    EXPECT_OK(read.launch(remote));
  }
  EXPECT_OK(oregDeviceSynchronize());
  EXPECT_EQ(found, 7);
  EXPECT_OK(oregStreamDestroy(remote));
}

TEST_F(EventTest, WaitsKeepTheRecordThatTheySaw) {
  Occupied occupied1(first_);
  EXPECT_OK(oregEventRecord(event_, first_));
  EXPECT_OK(oregStreamWaitEvent(second_, event_));
  const oregStream_t third = createStream();
  Occupied occupied3(third);
  EXPECT_OK(oregEventRecord(event_, third));  // second_ does not wait for this one
  occupied1.release();
  EXPECT_OK(oregStreamSynchronize(second_));
  EXPECT_EQ(oregEventQuery(event_), oregErrorNotReady);
  occupied3.release();
  EXPECT_OK(oregEventSynchronize(event_));
  EXPECT_OK(oregStreamDestroy(third));
}

TEST_F(EventTest, AStreamNeedNotWaitForItself) {
  Occupied occupied(first_);
  EXPECT_OK(oregEventRecord(event_, first_));
  EXPECT_OK(oregStreamWaitEvent(first_, event_));
  occupied.release();
  EXPECT_OK(oregStreamSynchronize(first_));
}

TEST_F(EventTest, DestroyedWhileWaitedForStillArrives) {
  const oregEvent_t event = createEvent();
  bool ran = false;
  Kernel kernel([&] { ran = true; });
  {
    const Occupied occupied(first_);
    EXPECT_OK(oregEventRecord(event, first_));
    EXPECT_OK(oregStreamWaitEvent(second_, event));
    EXPECT_OK(kernel.launch(second_));
    EXPECT_OK(oregEventDestroy(event));
  }
  EXPECT_OK(oregStreamSynchronize(second_));
  EXPECT_TRUE(ran);
}

TEST_F(EventTest, StreamOfAnotherDeviceIsRefused) {
  EXPECT_OK(oregSetDevice(1));
  const oregStream_t remote = createStream();
  const char* text = "event of device 0 cannot be recorded on a stream of device 1";
  EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregEventRecord(event_, remote));
  EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregEventRecord(event_, nullptr));
  EXPECT_OK(oregStreamDestroy(remote));
}

TEST_F(EventTest, UnknownFlagsAreRefused) {
  oregEvent_t event = nullptr;
  EXPECT_ERROR(oregErrorInvalidValue, "0x6", oregEventCreateWithFlags(&event, 6));
  EXPECT_EQ(event, nullptr);
}

TEST_F(EventTest, ElapsedTimeIsInMilliseconds) {
  const oregEvent_t start = createEvent(oregEventEnableTiming);
  const oregEvent_t end = createEvent(oregEventEnableTiming);
  Kernel sleep([] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); });
  const auto before = std::chrono::steady_clock::now();
  EXPECT_OK(oregEventRecord(start, first_));
  EXPECT_OK(sleep.launch(first_));
  EXPECT_OK(oregEventRecord(end, first_));
  const std::chrono::duration<float, std::milli> around = std::chrono::steady_clock::now() - before;
  float milliseconds = 0;
  EXPECT_OK(oregEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 3.0f);
  EXPECT_LE(milliseconds, around.count());
  float reverse = 0;
  EXPECT_OK(oregEventElapsedTime(&reverse, end, start));
  EXPECT_EQ(reverse, -milliseconds);
  EXPECT_OK(oregEventDestroy(start));
  EXPECT_OK(oregEventDestroy(end));
}

TEST_F(EventTest, ElapsedTimeNeedsTwoRecordedTimedEventsOfOneDevice) {
  const oregEvent_t start = createEvent(oregEventEnableTiming);
  const oregEvent_t end = createEvent(oregEventEnableTiming);
  EXPECT_OK(oregSetDevice(1));
  const oregEvent_t remote = createEvent(oregEventEnableTiming);
  EXPECT_OK(oregSetDevice(0));
  float milliseconds = 42;
  EXPECT_ERROR(oregErrorInvalidResourceHandle, "the end event measures no time",
               oregEventElapsedTime(&milliseconds, start, event_));
  EXPECT_ERROR(oregErrorInvalidResourceHandle, "the start event measures no time",
               oregEventElapsedTime(&milliseconds, event_, end));
  EXPECT_ERROR(oregErrorInvalidResourceHandle, "the start event was never recorded",
               oregEventElapsedTime(&milliseconds, start, end));
  EXPECT_OK(oregEventRecord(start, first_));
  EXPECT_ERROR(oregErrorInvalidResourceHandle, "the end event was never recorded",
               oregEventElapsedTime(&milliseconds, start, end));
  EXPECT_ERROR(oregErrorInvalidResourceHandle, "of devices 0 and 1",
               oregEventElapsedTime(&milliseconds, start, remote));
  {
    const Occupied occupied(first_);
    EXPECT_OK(oregEventRecord(end, first_));
    EXPECT_EQ(oregEventElapsedTime(&milliseconds, start, end), oregErrorNotReady);
    EXPECT_EQ(oregPeekAtLastError(), oregSuccess);
  }
  EXPECT_EQ(milliseconds, 42);
  EXPECT_OK(oregEventSynchronize(end));
  EXPECT_OK(oregEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 0);
  for (const oregEvent_t event : {start, end, remote}) EXPECT_OK(oregEventDestroy(event));
}

TEST_F(EventTest, DestroyedEventIsRefusedEverywhere) {
  const oregEvent_t event = createEvent(oregEventEnableTiming);
  EXPECT_OK(oregEventDestroy(event));
  const oregEvent_t reused = createEvent(oregEventEnableTiming);  // in the same place
  float milliseconds = 0;
  const std::vector<oregEvent_t> wrongs = {event, nullptr, reinterpret_cast<oregEvent_t>(first_),
                                           reinterpret_cast<oregEvent_t>(&milliseconds),
                                           reinterpret_cast<oregEvent_t>(~std::uintptr_t{0})};
  for (const oregEvent_t wrong : wrongs) {
    const char* text = "no live event";
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregEventDestroy(wrong));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregEventRecord(wrong, first_));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregEventQuery(wrong));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregEventSynchronize(wrong));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text, oregStreamWaitEvent(first_, wrong));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text,
                 oregEventElapsedTime(&milliseconds, wrong, reused));
    EXPECT_ERROR(oregErrorInvalidResourceHandle, text,
                 oregEventElapsedTime(&milliseconds, reused, wrong));
  }
  EXPECT_OK(oregEventDestroy(reused));
}

TEST_F(EventTest, ReusedEventStartsUnrecorded) {
  Occupied occupied(first_);
  const oregEvent_t event = createEvent();
  EXPECT_OK(oregEventRecord(event, first_));
  EXPECT_OK(oregEventDestroy(event));
  const oregEvent_t reused = createEvent();
  EXPECT_EQ(oregEventQuery(reused), oregSuccess);
  EXPECT_OK(oregEventDestroy(reused));
}

// Two streams of two devices take turns, each after the other's event, while other threads record
// and wait.
TEST_F(EventTest, RelayBetweenDevicesUnderLoad) {
  EXPECT_OK(oregSetDevice(1));
  const oregStream_t remote = createStream();
  const oregEvent_t back = createEvent();
  EXPECT_OK(oregSetDevice(0));
  std::atomic<bool> done{false};
  const oregEvent_t noise = createEvent();
  std::thread load([&] {
    while (!done) {
      EXPECT_OK(oregEventRecord(noise, second_));
      EXPECT_OK(oregStreamWaitEvent(remote, noise));
      EXPECT_OK(oregEventSynchronize(noise));
    }
  });
  constexpr int kRounds = 500;
  int turns = 0;  // not atomic: only the events keep the two streams apart
  Kernel ping([&] {
    if (turns % 2 == 0) ++turns;
  });
  Kernel pong([&] {
    if (turns % 2 == 1) ++turns;
  });
  {
    const Occupied occupied(first_);
    for (int round = 0; round < kRounds; ++round) {
      EXPECT_OK(ping.launch(first_));
      EXPECT_OK(oregEventRecord(event_, first_));
      EXPECT_OK(oregStreamWaitEvent(remote, event_));
      EXPECT_OK(pong.launch(remote));
      EXPECT_OK(oregEventRecord(back, remote));
      EXPECT_OK(oregStreamWaitEvent(first_, back));
    }
  }
  EXPECT_OK(oregStreamSynchronize(first_));
  EXPECT_EQ(turns, 2 * kRounds);
  done = true;
  load.join();
  EXPECT_OK(oregDeviceSynchronize());
  EXPECT_OK(oregStreamDestroy(remote));
  EXPECT_OK(oregEventDestroy(back));
  EXPECT_OK(oregEventDestroy(noise));
}

}  // namespace
