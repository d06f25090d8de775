#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "support.h"

namespace {

class MemoryTest : public DriverTest {
 protected:
  static std::size_t freeBytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_OK(oregMemGetInfo(&free, &total));
    EXPECT_EQ(total, std::size_t{8} << 30);
    return free;
  }
};

TEST_F(MemoryTest, AllocationsAreAlignedAndCounted) {
  const std::size_t before = freeBytes();
  std::vector<void*> pointers;
  for (const std::size_t bytes : {1, 511, 512, 513, 4096}) {
    pointers.push_back(allocate(bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointers.back()) % 512, 0u);
  }
  EXPECT_EQ(before - freeBytes(), 512u + 512 + 512 + 1024 + 4096);
  for (void* pointer : pointers) EXPECT_OK(oregFree(pointer));
  EXPECT_EQ(freeBytes(), before);
}

TEST_F(MemoryTest, ZeroBytesGiveNull) {
  void* pointer = &pointer;
  EXPECT_OK(oregMalloc(&pointer, 0));
  EXPECT_EQ(pointer, nullptr);
  EXPECT_OK(oregFree(nullptr));
}

TEST_F(MemoryTest, OutOfMemoryStatesSizesAndTheDeviceWorksOn) {
  void* kept = allocate(1 << 20);
  const std::size_t free = freeBytes();
  void* pointer = kept;
  const std::string text = "cannot allocate 17179869184 bytes: " + std::to_string(free) +
                           " of its 8589934592 bytes are free";
  EXPECT_ERROR(oregErrorMemoryAllocation, text, oregMalloc(&pointer, std::size_t{16} << 30));
  for (const std::size_t bytes : {free + 1, std::numeric_limits<std::size_t>::max(),
                                  std::numeric_limits<std::size_t>::max() - 510}) {
    EXPECT_ERROR(oregErrorMemoryAllocation, "cannot allocate", oregMalloc(&pointer, bytes));
  }
  EXPECT_EQ(pointer, kept);
  EXPECT_EQ(freeBytes(), free);
  EXPECT_OK(oregFree(kept));
}

TEST_F(MemoryTest, TheWholeDeviceCanBeAllocated) {
  const std::size_t all = freeBytes();
  ASSERT_EQ(all, std::size_t{8} << 30);
  void* whole = allocate(all);
  EXPECT_EQ(freeBytes(), 0u);
  void* more = nullptr;
  EXPECT_ERROR(oregErrorMemoryAllocation, "0 of its", oregMalloc(&more, 1));
  EXPECT_OK(oregSetDevice(1));  // the other device has its own memory
  void* other = allocate(all);
  EXPECT_OK(oregFree(other));
  EXPECT_OK(oregFree(whole));  // of a device that is not current
  EXPECT_OK(oregSetDevice(0));
  EXPECT_EQ(freeBytes(), all);
}

TEST_F(MemoryTest, BestFitReusesTheSmallestHole) {
  void* large = allocate(8 * 512);
  void* wall1 = allocate(512);
  void* small = allocate(3 * 512);
  void* wall2 = allocate(512);
  EXPECT_OK(oregFree(large));
  EXPECT_OK(oregFree(small));
  EXPECT_EQ(allocate(2 * 512), small);
  EXPECT_EQ(allocate(5 * 512), large);
  for (void* pointer : {large, wall1, small, wall2}) EXPECT_OK(oregFree(pointer));
}

TEST_F(MemoryTest, FreedNeighboursMergeInAnyOrder) {
  const std::size_t all = freeBytes();
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> pieces;
    for (int i = 0; i < 16; ++i) pieces.push_back(allocate(all / 16));
    EXPECT_EQ(freeBytes(), 0u);
    std::shuffle(pieces.begin(), pieces.end(), random);
    for (void* piece : pieces) EXPECT_OK(oregFree(piece));
    EXPECT_OK(oregFree(allocate(all)));
  }
}

TEST_F(MemoryTest, WrongPointersAreRefusedAndNothingIsFreed) {
  char host[8] = {};
  char* pointer = static_cast<char*>(allocate(4096));
  void* freed = allocate(4096);
  EXPECT_OK(oregFree(freed));
  const std::size_t free = freeBytes();
  EXPECT_ERROR(oregErrorInvalidValue, "freed before", oregFree(freed));
  EXPECT_ERROR(oregErrorInvalidValue, "lies 512 bytes inside the allocation",
               oregFree(pointer + 512));
  EXPECT_ERROR(oregErrorInvalidValue, "lies 1 bytes inside the allocation", oregFree(pointer + 1));
  EXPECT_ERROR(oregErrorInvalidValue, "is host memory", oregFree(host));
  EXPECT_ERROR(oregErrorInvalidValue, "is host memory", oregFree(kernelAddress(pointer)));
  EXPECT_EQ(freeBytes(), free);
  EXPECT_OK(oregMemset(pointer, 1, 4096));
  EXPECT_OK(oregFree(pointer));
}

TEST_F(MemoryTest, ConcurrentDoubleFreeSucceedsOnce) {
  for (int round = 0; round < 200; ++round) {
    void* pointer = allocate(512);
    std::atomic<int> successes{0};
    const auto free = [&] { successes += oregFree(pointer) == oregSuccess; };
    std::thread other(free);
    free();
    other.join();
    EXPECT_EQ(successes, 1);
  }
}

TEST_F(MemoryTest, FreedPagesGoBackToTheSystemAndNeighboursStay) {
  char* before = static_cast<char*>(allocate(512));
  char* middle = static_cast<char*>(allocate(64 * 1024));
  char* after = static_cast<char*>(allocate(512));
  ASSERT_EQ(middle, before + 512);
  ASSERT_EQ(after, middle + 64 * 1024);
  EXPECT_OK(oregMemset(before, 1, 512));
  EXPECT_OK(oregMemset(middle, 2, 64 * 1024));
  EXPECT_OK(oregMemset(after, 3, 512));
  EXPECT_OK(oregFree(middle));
  EXPECT_EQ(*kernelAddress(middle + 32 * 1024), 0);  // a page given back reads as zeros
  EXPECT_EQ(*kernelAddress(before + 511), 1);
  EXPECT_EQ(*kernelAddress(after), 3);
  EXPECT_OK(oregFree(before));
  EXPECT_EQ(*kernelAddress(before), 0);
  EXPECT_EQ(*kernelAddress(after), 3);
  EXPECT_OK(oregFree(after));
}

TEST_F(MemoryTest, FreeWaitsForQueuedWork) {
  const oregStream_t stream = createStream();
  void* pointer = allocate(512);
  Occupied occupied(stream);
  EXPECT_OK(oregMemsetAsync(pointer, 1, 512, stream));
  std::atomic<bool> freed{false};
  std::thread other([&] {
    EXPECT_OK(oregFree(pointer));
    EXPECT_EQ(oregStreamQuery(stream), oregSuccess);
    freed = true;
  });
  giveTimeToGoWrong();
  EXPECT_FALSE(freed);
  occupied.release();
  other.join();
  EXPECT_TRUE(freed);
  EXPECT_OK(oregStreamDestroy(stream));
}

// Every allocation is filled with its own byte, and checked before it is freed.
void allocateAndCheck(int seed, int rounds) {
  std::mt19937 random(seed);
  EXPECT_OK(oregSetDevice(seed % 2));
  struct Allocation {
    void* pointer;
    std::size_t bytes;
    unsigned char value;
  };
  std::vector<Allocation> live;
  const auto checkAndFree = [](const Allocation& allocation) {
    std::vector<unsigned char> found(allocation.bytes);
    EXPECT_OK(
        oregMemcpy(found.data(), allocation.pointer, allocation.bytes, oregMemcpyDeviceToHost));
    const auto isOther = [&](unsigned char byte) { return byte != allocation.value; };
    EXPECT_EQ(std::count_if(found.begin(), found.end(), isOther), 0);
    EXPECT_OK(oregFree(allocation.pointer));
  };
  for (int round = 0; round < rounds; ++round) {
    if (live.size() < 20 || random() % 2 == 0) {
      const std::size_t bytes = 1 + random() % (std::size_t{1} << (random() % 16));
      const auto value = static_cast<unsigned char>(random());
      live.push_back({allocate(bytes), bytes, value});
      EXPECT_OK(oregMemset(live.back().pointer, value, bytes));
    } else {
      std::swap(live[random() % live.size()], live.back());
      checkAndFree(live.back());
      live.pop_back();
    }
  }
  for (const Allocation& allocation : live) checkAndFree(allocation);
}

TEST_F(MemoryTest, ConcurrentAllocationsNeverOverlap) {
  const std::size_t before = freeBytes();
  std::vector<std::thread> threads;
  for (int seed = 0; seed < 4; ++seed) threads.emplace_back(allocateAndCheck, seed, 1000);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(freeBytes(), before);
}

TEST_F(MemoryTest, HostMemory) {
  void* pointer = nullptr;
  EXPECT_OK(oregMallocHost(&pointer, 5000));
  std::memset(pointer, 1, 5000);
  void* empty = pointer;
  EXPECT_OK(oregMallocHost(&empty, 0));
  EXPECT_EQ(empty, nullptr);
  EXPECT_OK(oregFreeHost(nullptr));
  EXPECT_ERROR(oregErrorMemoryAllocation, "the host cannot allocate",
               oregMallocHost(&empty, std::numeric_limits<std::size_t>::max() / 2));
  int local = 0;
  void* device = allocate(8);
  EXPECT_ERROR(oregErrorInvalidValue, "no live allocation", oregFreeHost(&local));
  EXPECT_ERROR(oregErrorInvalidValue, "no live allocation", oregFreeHost(device));
  EXPECT_ERROR(oregErrorInvalidValue, "no live allocation",
               oregFreeHost(static_cast<char*>(pointer) + 1));
  EXPECT_OK(oregFreeHost(pointer));
  EXPECT_ERROR(oregErrorInvalidValue, "no live allocation", oregFreeHost(pointer));
  EXPECT_OK(oregFree(device));
}

TEST_F(MemoryTest, PointerAttributes) {
  EXPECT_OK(oregSetDevice(1));
  char* device = static_cast<char*>(allocate(100));
  void* host = nullptr;
  EXPECT_OK(oregMallocHost(&host, 100));
  int local = 0;
  const auto attributesOf = [](const void* pointer) {
    oregPointerAttributes attributes{oregMemoryTypeUnregistered, 77};
    EXPECT_OK(oregPointerGetAttributes(&attributes, pointer));
    return attributes;
  };
  EXPECT_EQ(attributesOf(device + 99).type, oregMemoryTypeDevice);
  EXPECT_EQ(attributesOf(device + 99).device, 1);
  EXPECT_EQ(attributesOf(static_cast<char*>(host) + 99).type, oregMemoryTypeHost);
  EXPECT_EQ(attributesOf(host).device, -1);
  EXPECT_EQ(attributesOf(static_cast<char*>(host) + 100).type, oregMemoryTypeUnregistered);
  EXPECT_EQ(attributesOf(&local).type, oregMemoryTypeUnregistered);
  EXPECT_EQ(attributesOf(&local).device, -1);
  oregPointerAttributes unchanged{oregMemoryTypeHost, 77};
  EXPECT_ERROR(oregErrorInvalidValue, "in no allocation of device 1",
               oregPointerGetAttributes(&unchanged, device + 100));
  EXPECT_ERROR(oregErrorInvalidValue, "null", oregPointerGetAttributes(&unchanged, nullptr));
  EXPECT_OK(oregFree(device));
  EXPECT_ERROR(oregErrorInvalidValue, "in no allocation of device 1",
               oregPointerGetAttributes(&unchanged, device));
  EXPECT_EQ(unchanged.device, 77);
  EXPECT_OK(oregFreeHost(host));
}

TEST_F(MemoryTest, FreeAsyncWaitsForTheStreamButNotTheCaller) {
  std::size_t before = 0;
  std::size_t during = 0;
  std::size_t after = 0;
  std::size_t total = 0;
  EXPECT_OK(oregMemGetInfo(&before, &total));
  void* pointer = allocate(1 << 20);
  const oregStream_t stream = createStream();
  {
    Occupied occupied(stream);
    EXPECT_OK(oregFreeAsync(pointer, stream));
    EXPECT_OK(oregMemGetInfo(&during, &total));
    EXPECT_EQ(during, before - (1 << 20));  // still in use
    // But it is freed as far as the caller is concerned.
    EXPECT_ERROR(oregErrorInvalidValue, "freed before", oregFree(pointer));
    EXPECT_ERROR(oregErrorInvalidValue, "freed before", oregFreeAsync(pointer, stream));
    EXPECT_ERROR(oregErrorInvalidValue, "in no allocation", oregMemset(pointer, 0, 1));
  }
  EXPECT_OK(oregStreamSynchronize(stream));
  EXPECT_OK(oregMemGetInfo(&after, &total));
  EXPECT_EQ(after, before);
  EXPECT_OK(oregStreamDestroy(stream));
}

TEST_F(MemoryTest, FreeAsyncOnAnIdleStreamFreesAtOnce) {
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t total = 0;
  EXPECT_OK(oregMemGetInfo(&before, &total));
  EXPECT_OK(oregFreeAsync(allocate(4096), nullptr));
  EXPECT_OK(oregFreeAsync(nullptr, nullptr));
  EXPECT_OK(oregMemGetInfo(&after, &total));
  EXPECT_EQ(after, before);
}

TEST_F(MemoryTest, FreeAsyncRefusesWhatFreeRefuses) {
  char host = 0;
  void* pointer = allocate(1024);
  EXPECT_ERROR(oregErrorInvalidValue, "host memory: oregFreeAsync", oregFreeAsync(&host, nullptr));
  EXPECT_ERROR(oregErrorInvalidValue, "lies 8 bytes inside",
               oregFreeAsync(static_cast<char*>(pointer) + 8, nullptr));
  EXPECT_ERROR(oregErrorInvalidValue, "oregMallocHost", oregFreeHostAsync(&host, nullptr));
  EXPECT_OK(oregFree(pointer));
}

TEST_F(MemoryTest, FreeHostAsyncWaitsForTheStream) {
  void* pinned = nullptr;
  EXPECT_OK(oregMallocHost(&pinned, 64));
  void* pointer = allocate(64);
  EXPECT_OK(oregMemset(pointer, 3, 64));
  const oregStream_t stream = createStream();
  {
    Occupied occupied(stream);
    EXPECT_OK(oregMemcpyAsync(pinned, pointer, 64, oregMemcpyDeviceToHost, stream));
    EXPECT_OK(oregFreeHostAsync(pinned, stream));  // after the copy
    EXPECT_ERROR(oregErrorInvalidValue, "no live allocation", oregFreeHost(pinned));
  }
  EXPECT_OK(oregStreamSynchronize(stream));
  EXPECT_OK(oregFree(pointer));
  EXPECT_OK(oregStreamDestroy(stream));
}

}  // namespace
