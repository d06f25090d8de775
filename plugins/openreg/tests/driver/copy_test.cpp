#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "support.h"

namespace {

class CopyTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    device_ = static_cast<char*>(allocate(kBytes));
    EXPECT_OK(oregSetDevice(1));
    device1_ = static_cast<char*>(allocate(kBytes));
    EXPECT_OK(oregSetDevice(0));
    void* pinned = nullptr;
    EXPECT_OK(oregMallocHost(&pinned, kBytes));
    pinned_ = static_cast<char*>(pinned);
    std::iota(host_.begin(), host_.end(), 0);
  }
  void TearDown() override {
    EXPECT_OK(oregFree(device_));
    EXPECT_OK(oregFree(device1_));
    EXPECT_OK(oregFreeHost(pinned_));
    DriverTest::TearDown();
  }

  static constexpr std::size_t kBytes = 1000;
  char* device_ = nullptr;
  char* device1_ = nullptr;
  char* pinned_ = nullptr;
  std::vector<char> host_ = std::vector<char>(kBytes);
  std::vector<char> result_ = std::vector<char>(kBytes);
};

TEST_F(CopyTest, EveryDirection) {
  EXPECT_OK(oregMemcpy(device_, host_.data(), kBytes, oregMemcpyHostToDevice));
  EXPECT_OK(oregMemcpy(device1_, device_, kBytes, oregMemcpyDeviceToDevice));
  EXPECT_OK(oregMemset(device_, 0, kBytes));
  EXPECT_OK(oregMemcpy(device_, device1_, kBytes, oregMemcpyDeviceToDevice));
  EXPECT_OK(oregMemcpy(pinned_, device_, kBytes, oregMemcpyDeviceToHost));
  EXPECT_OK(oregMemcpy(result_.data(), pinned_, kBytes, oregMemcpyHostToHost));
  EXPECT_EQ(result_, host_);
}

TEST_F(CopyTest, LargeBlocks) {
  const std::size_t bytes = (16 << 20) + 3;
  std::vector<char> source(bytes);
  for (std::size_t i = 0; i < bytes; ++i) source[i] = static_cast<char>(i * 31 >> 7);
  std::vector<char> found(bytes);
  void* first = allocate(bytes);
  void* second = allocate(bytes);
  EXPECT_OK(oregMemcpy(first, source.data(), bytes, oregMemcpyHostToDevice));
  EXPECT_OK(oregMemcpy(second, first, bytes, oregMemcpyDeviceToDevice));
  EXPECT_OK(oregMemcpy(found.data(), second, bytes, oregMemcpyDeviceToHost));
  EXPECT_TRUE(found == source);
  EXPECT_OK(oregFree(first));
  EXPECT_OK(oregFree(second));
}

TEST_F(CopyTest, OnlyTheRangeIsWritten) {
  EXPECT_OK(oregMemset(device_, 7, kBytes));
  EXPECT_OK(oregMemset(device_ + 10, 0x1ff, 20));  // the low byte counts, as in C
  EXPECT_OK(oregMemcpy(device_ + 100, host_.data() + 1, 5, oregMemcpyHostToDevice));
  EXPECT_OK(oregMemcpy(result_.data(), device_, kBytes, oregMemcpyDeviceToHost));
  std::vector<char> expected(kBytes, 7);
  std::fill_n(expected.begin() + 10, 20, static_cast<char>(0xff));
  std::iota(expected.begin() + 100, expected.begin() + 105, 1);
  EXPECT_EQ(result_, expected);
}

TEST_F(CopyTest, OverlappingRangesAreCopiedAsIfThroughABuffer) {
  EXPECT_OK(oregMemcpy(device_, host_.data(), kBytes, oregMemcpyHostToDevice));
  EXPECT_OK(oregMemcpy(device_ + 3, device_, 900, oregMemcpyDeviceToDevice));
  EXPECT_OK(oregMemcpy(result_.data(), device_, kBytes, oregMemcpyDeviceToHost));
  EXPECT_TRUE(std::equal(host_.begin(), host_.begin() + 900, result_.begin() + 3));
}

TEST_F(CopyTest, KindThatDoesNotFitThePointers) {
  struct Wrong {
    void* dst;
    void* src;
    oregMemcpyKind kind;
    const char* text;
  };
  const Wrong cases[] = {
      {device_, host_.data(), oregMemcpyHostToHost, "is device memory, but oregMemcpyHostToHost"},
      {device_, host_.data(), oregMemcpyDeviceToHost, "dst"},
      {device_, host_.data(), oregMemcpyDeviceToDevice, "src"},
      {host_.data(), device_, oregMemcpyHostToDevice, "is host memory, but oregMemcpyHostToDevice"},
      {host_.data(), device_, oregMemcpyHostToHost, "src"},
      {host_.data(), device_, oregMemcpyDeviceToDevice, "dst"},
      {device_, device1_, oregMemcpyHostToDevice, "src"},
      {device_, device1_, oregMemcpyDeviceToHost, "dst"},
      {host_.data(), pinned_, oregMemcpyHostToDevice, "dst"},
      {host_.data(), pinned_, oregMemcpyDeviceToHost, "src"},
      {device_, device1_, static_cast<oregMemcpyKind>(7), "7 is no oregMemcpyKind"},
  };
  for (const Wrong& wrong : cases) {
    EXPECT_ERROR(oregErrorInvalidMemcpyDirection, wrong.text,
                 oregMemcpy(wrong.dst, wrong.src, 8, wrong.kind));
    EXPECT_ERROR(oregErrorInvalidMemcpyDirection, wrong.text,
                 oregMemcpyAsync(wrong.dst, wrong.src, 8, wrong.kind, nullptr));
  }
}

TEST_F(CopyTest, RangesMustLieInsideOneAllocation) {
  const std::string beyond = "reach beyond their allocation";
  const std::size_t huge = std::numeric_limits<std::size_t>::max();
  EXPECT_ERROR(oregErrorInvalidValue, beyond,
               oregMemcpy(device_, host_.data(), kBytes + 1, oregMemcpyHostToDevice));
  EXPECT_ERROR(oregErrorInvalidValue, beyond,
               oregMemcpy(device_ + 1, host_.data(), kBytes, oregMemcpyHostToDevice));
  EXPECT_ERROR(oregErrorInvalidValue, beyond,
               oregMemcpy(host_.data(), device_ + 1, kBytes, oregMemcpyDeviceToHost));
  EXPECT_ERROR(oregErrorInvalidValue, beyond,
               oregMemcpy(host_.data(), device_ + 1, huge, oregMemcpyDeviceToHost));
  EXPECT_ERROR(oregErrorInvalidValue, beyond,
               oregMemcpy(pinned_ + 1, device_, kBytes, oregMemcpyDeviceToHost));
  EXPECT_ERROR(oregErrorInvalidValue, beyond, oregMemset(device_ + 1, 0, kBytes));
  EXPECT_ERROR(oregErrorInvalidValue, beyond, oregMemsetAsync(device_, 0, huge, nullptr));
  // Past the 1000 bytes asked for, although the block has 1024.
  EXPECT_ERROR(oregErrorInvalidValue, "in no allocation", oregMemset(device_ + kBytes, 0, 1));
  EXPECT_ERROR(oregErrorInvalidValue, "is host memory", oregMemset(host_.data(), 0, 1));
  EXPECT_ERROR(oregErrorInvalidValue, "is host memory", oregMemset(nullptr, 0, 1));

  void* freed = allocate(64);
  EXPECT_OK(oregFree(freed));
  EXPECT_ERROR(oregErrorInvalidValue, "in no allocation",
               oregMemcpy(host_.data(), freed, 8, oregMemcpyDeviceToHost));
  EXPECT_ERROR(oregErrorInvalidValue, "in no allocation", oregMemset(freed, 0, 8));
}

TEST_F(CopyTest, NullPointers) {
  EXPECT_ERROR(oregErrorInvalidValue, "dst",
               oregMemcpy(nullptr, device_, 8, oregMemcpyDeviceToHost));
  EXPECT_ERROR(oregErrorInvalidValue, "src",
               oregMemcpy(device_, nullptr, 8, oregMemcpyHostToDevice));
  EXPECT_ERROR(oregErrorInvalidValue, "dst",
               oregMemcpy(nullptr, host_.data(), 8, oregMemcpyHostToDevice));
}

TEST_F(CopyTest, ZeroBytesNeedNoPointers) {
  EXPECT_OK(oregMemcpy(nullptr, nullptr, 0, oregMemcpyHostToDevice));
  EXPECT_OK(oregMemcpyAsync(nullptr, nullptr, 0, oregMemcpyDeviceToHost, nullptr));
  EXPECT_OK(oregMemset(nullptr, 0, 0));
  EXPECT_OK(oregMemsetAsync(nullptr, 0, 0, nullptr));
}

TEST_F(CopyTest, PinnedAndDeviceCopiesAreQueuedOnABusyStream) {
  const oregStream_t stream = createStream();
  std::memcpy(pinned_, host_.data(), kBytes);
  EXPECT_OK(oregMemset(device_, 0, kBytes));
  {
    const Occupied occupied(stream);
    EXPECT_OK(oregMemcpyAsync(device_, pinned_, kBytes, oregMemcpyHostToDevice, stream));
    EXPECT_OK(oregMemcpyAsync(device1_, device_, kBytes, oregMemcpyDeviceToDevice, stream));
    EXPECT_OK(oregMemsetAsync(device_, 9, kBytes, stream));
    EXPECT_OK(oregMemcpyAsync(pinned_, device_, kBytes, oregMemcpyDeviceToHost, stream));
    EXPECT_EQ(oregStreamQuery(stream), oregErrorNotReady);
    EXPECT_EQ(pinned_[1], 1);
    EXPECT_EQ(*kernelAddress(device_ + 1), 0);
  }
  EXPECT_OK(oregStreamSynchronize(stream));
  EXPECT_EQ(pinned_[1], 9);
  EXPECT_OK(oregMemcpy(result_.data(), device1_, kBytes, oregMemcpyDeviceToHost));
  EXPECT_EQ(result_, host_);
  EXPECT_OK(oregStreamDestroy(stream));
}

TEST_F(CopyTest, PageableCopiesHaveRunWhenTheyReturn) {
  const oregStream_t stream = createStream();
  Occupied occupied(stream);
  EXPECT_OK(oregMemsetAsync(device_, 5, kBytes, stream));
  std::atomic<bool> returned{false};
  std::thread copier([&] {
    EXPECT_OK(oregMemcpyAsync(result_.data(), device_, kBytes, oregMemcpyDeviceToHost, stream));
    EXPECT_EQ(result_, std::vector<char>(kBytes, 5));
    EXPECT_OK(oregMemcpyAsync(device_, host_.data(), kBytes, oregMemcpyHostToDevice, stream));
    std::fill(host_.begin(), host_.end(), 0);  // must not matter any more
    returned = true;
  });
  giveTimeToGoWrong();
  EXPECT_FALSE(returned);
  occupied.release();
  copier.join();
  EXPECT_OK(oregMemcpyAsync(result_.data(), device_, kBytes, oregMemcpyDeviceToHost, stream));
  EXPECT_EQ(result_[1], 1);
  EXPECT_OK(oregStreamDestroy(stream));
}

TEST_F(CopyTest, CopiesThatWaitReportWhatFailedBefore) {
  const oregStream_t stream = createStream();
  Kernel failing([] { return oregErrorInvalidDevice; });
  EXPECT_OK(failing.launch(stream));
  EXPECT_OK(oregMemsetAsync(device_, 1, kBytes, stream));
  result_[0] = 42;
  EXPECT_ERROR(oregErrorInvalidDevice, "kernel that ran earlier",
               oregMemcpyAsync(result_.data(), device_, kBytes, oregMemcpyDeviceToHost, stream));
  EXPECT_EQ(result_[0], 42);
  EXPECT_OK(oregMemcpyAsync(result_.data(), device_, kBytes, oregMemcpyDeviceToHost, stream));
  EXPECT_EQ(result_[0], 1);
  EXPECT_OK(oregStreamDestroy(stream));

  EXPECT_OK(failing.launch(nullptr));
  EXPECT_ERROR(oregErrorInvalidDevice, "kernel that ran earlier", oregMemset(device_, 2, kBytes));
  EXPECT_OK(oregMemset(device_, 2, kBytes));
}

TEST_F(CopyTest, DestroyedStreamIsRefused) {
  const oregStream_t stream = createStream();
  EXPECT_OK(oregStreamDestroy(stream));
  EXPECT_ERROR(oregErrorInvalidResourceHandle, "no live stream",
               oregMemcpyAsync(device_, device1_, 8, oregMemcpyDeviceToDevice, stream));
  EXPECT_ERROR(oregErrorInvalidResourceHandle, "no live stream",
               oregMemcpyAsync(device_, device1_, 0, oregMemcpyDeviceToDevice, stream));
  EXPECT_ERROR(oregErrorInvalidResourceHandle, "no live stream",
               oregMemsetAsync(device_, 0, 8, stream));
}

}  // namespace
