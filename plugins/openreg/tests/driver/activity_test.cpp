// Activities: what a profiler is told about the work of the device.
#include <chrono>
#include <mutex>
#include <vector>

#include "support.h"

namespace {

class ActivityTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    EXPECT_OK(oregActivitySubscribe(&record, this));
  }
  void TearDown() override {
    finish();
    DriverTest::TearDown();
  }

  // Ends the subscription, after which nothing is added.
  const std::vector<oregActivity>& finish() {
    EXPECT_OK(oregActivityUnsubscribe());
    return activities_;
  }

 private:
  static void record(const oregActivity* activity, void* self) {
    auto* test = static_cast<ActivityTest*>(self);
    const std::lock_guard lock(test->mutex_);
    test->activities_.push_back(*activity);
  }
  std::mutex mutex_;
  std::vector<oregActivity> activities_;
};

TEST_F(ActivityTest, KernelsCopiesAndFillsAreReported) {
  void* pointer = allocate(64);
  char host[64] = {};
  const oregStream_t stream = createStream();
  EXPECT_OK(oregMemcpyAsync(pointer, host, 64, oregMemcpyHostToDevice, stream));
  Kernel kernel([] {});
  EXPECT_OK(kernel.launch(stream));
  EXPECT_OK(oregMemsetAsync(pointer, 1, 32, stream));
  EXPECT_OK(oregKernelBegin(nullptr));
  EXPECT_OK(oregKernelEnd(nullptr));
  const auto& seen = finish();
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].kind, oregActivityMemcpy);
  EXPECT_EQ(seen[0].copyKind, oregMemcpyHostToDevice);
  EXPECT_EQ(seen[0].bytes, 64u);
  EXPECT_EQ(seen[1].kind, oregActivityKernel);
  EXPECT_EQ(seen[1].stream, stream);
  EXPECT_EQ(seen[2].kind, oregActivityMemset);
  EXPECT_EQ(seen[2].bytes, 32u);
  EXPECT_EQ(seen[3].kind, oregActivityKernel);
  EXPECT_NE(seen[3].stream, nullptr);  // the default stream's own handle
  EXPECT_NE(seen[3].stream, stream);
  std::uint64_t last = 0;
  for (const oregActivity& activity : seen) {
    EXPECT_EQ(activity.device, 0);
    EXPECT_EQ(activity.correlation, 0u);
    EXPECT_LE(last, activity.startNanoseconds);
    EXPECT_LE(activity.startNanoseconds, activity.endNanoseconds);
    last = activity.endNanoseconds;
  }
  EXPECT_OK(oregFree(pointer));
  EXPECT_OK(oregStreamDestroy(stream));
}

TEST_F(ActivityTest, QueuedWorkHasTheTimesAtWhichItRan) {
  const oregStream_t stream = createStream();
  EXPECT_OK(oregStreamDelay(stream, 20'000));
  Kernel kernel([] {});
  EXPECT_OK(kernel.launch(stream));
  const auto& seen = finish();  // waits for both
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].kind, oregActivityDelay);
  EXPECT_GE(seen[0].endNanoseconds - seen[0].startNanoseconds, 20'000'000u);
  EXPECT_GE(seen[1].startNanoseconds, seen[0].endNanoseconds);
  EXPECT_OK(oregStreamDestroy(stream));
}

TEST_F(ActivityTest, CorrelationsNestAndBelongToTheSubmittingThread) {
  const oregStream_t stream = createStream();
  const auto submit = [stream] { EXPECT_OK(oregStreamDelay(stream, 0)); };
  EXPECT_OK(oregActivityPushCorrelation(7));
  submit();
  EXPECT_OK(oregActivityPushCorrelation(8));
  submit();
  std::thread(submit).join();
  EXPECT_OK(oregActivityPopCorrelation());
  submit();
  EXPECT_OK(oregActivityPopCorrelation());
  submit();
  EXPECT_ERROR(oregErrorInvalidValue, "pushed no correlation", oregActivityPopCorrelation());
  std::vector<std::uint64_t> ids;
  for (const oregActivity& activity : finish()) ids.push_back(activity.correlation);
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{7, 8, 0, 7, 0}));
  EXPECT_OK(oregStreamDestroy(stream));
}

TEST_F(ActivityTest, OneSubscriberAtATime) {
  const auto ignore = [](const oregActivity*, void*) {};
  EXPECT_ERROR(oregErrorInvalidValue, "a subscriber", oregActivitySubscribe(ignore, nullptr));
  EXPECT_ERROR(oregErrorInvalidValue, "null", oregActivitySubscribe(nullptr, nullptr));
  finish();
  EXPECT_OK(oregActivityUnsubscribe());  // there is none: nothing to do
  EXPECT_OK(oregActivitySubscribe(ignore, nullptr));
}

TEST_F(ActivityTest, NothingIsReportedAfterTheSubscription) {
  finish();
  Kernel kernel([] {});
  EXPECT_OK(kernel.launch(nullptr));
  EXPECT_TRUE(finish().empty());
}

}  // namespace
