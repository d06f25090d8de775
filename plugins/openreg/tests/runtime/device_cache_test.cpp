// The cache of device memory under concurrent load. Its neighbours are real, the driver included;
// only what PyTorch's own libraries would do is left out.
#include "runtime/device_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/backward.h"
#include "runtime/device.h"
#include "runtime/stream.h"

namespace openreg {
void keep_backward_on_this_thread() {}
}  // namespace openreg

namespace torch::utils {
void device_lazy_init(c10::DeviceType) { openreg::initialized = true; }
}  // namespace torch::utils

namespace openreg {
namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 2000;
constexpr size_t kSmall = 4096;

char* kernel_address(const Block& block) {
  static const ptrdiff_t offset = [] {
    ptrdiff_t value = 0;
    EXPECT_EQ(oregGetKernelOffset(&value), oregSuccess);
    return value;
  }();
  return static_cast<char*>(block.pointer) + offset;
}

// Work that a stream does with a block: it finds every byte as it was left and leaves its own. Two
// pieces of work that use the same bytes without an order between them are a data race, which
// ThreadSanitizer reports.
struct Use {
  char* data;
  size_t bytes;
  char expected;
  char left;
  std::atomic<int>* failures;

  static oregError_t run(void* argument) {
    const std::unique_ptr<Use> use(static_cast<Use*>(argument));
    for (size_t i = 0; i < use->bytes; ++i) {
      if (use->expected != 0 && use->data[i] != use->expected) ++*use->failures;
      use->data[i] = use->left;
    }
    return oregSuccess;
  }
};

// A kernel that allocates, as kernels do for what they compute on the way.
struct Scratch {
  c10::Stream stream;
  size_t bytes;
  std::atomic<int>* failures;

  static oregError_t run(void* argument) {
    const std::unique_ptr<Scratch> scratch(static_cast<Scratch*>(argument));
    const QueuedKernelScope on_worker(scratch->stream);
    DeviceCache& cache = cache_of(scratch->stream.device_index());
    Block* block = cache.allocate(scratch->bytes);
    char* const data = kernel_address(*block);
    data[0] = data[scratch->bytes - 1] = 7;
    cache.free(block);
    return oregSuccess;
  }
};

void work_on(c10::DeviceIndex device, unsigned seed, std::atomic<int>& failures) {
  std::mt19937 random(seed);
  const auto below = [&random](size_t limit) { return static_cast<size_t>(random() % limit); };
  set_device(device);
  const c10::Stream stream = pooled_stream(device, 0);
  const oregStream_t handle = driver_stream(stream);
  const oregStream_t other = driver_stream(pooled_stream(device, -1));
  exchange_stream(stream);
  DeviceCache& cache = cache_of(device);
  std::vector<std::pair<Block*, size_t>> kept;
  const auto launch = [&failures](auto* work, oregStream_t on) {
    if (oregLaunch(&std::remove_pointer_t<decltype(work)>::run, work, on) != oregSuccess)
      ++failures;
  };
  for (int round = 0; round < kRounds; ++round) {
    if (below(8) == 0) oregStreamDelay(handle, below(50));
    const size_t bytes = below(16) == 0 ? 1 + below(4 << 20) : 1 + below(kSmall);
    const size_t used = std::min(bytes, kSmall);
    Block* block = cache.allocate(bytes);
    char* const data = kernel_address(*block);
    const char value = static_cast<char>(1 + below(100));
    launch(new Use{data, used, 0, value, &failures}, handle);
    launch(new Scratch{stream, bytes, &failures}, handle);
    if (below(2) == 0) {  // used on another stream too
      oregEvent_t event = nullptr;
      oregEventCreateWithFlags(&event, oregEventDefault);
      oregEventRecord(event, handle);
      oregStreamWaitEvent(other, event);
      oregEventDestroy(event);
      cache.record_stream(block, other);
      launch(new Use{data, used, value, value, &failures}, other);
    } else {
      launch(new Use{data, used, value, 0, &failures}, handle);
    }
    kept.emplace_back(block, bytes);
    while (kept.size() > below(12)) {
      cache.free(kept.back().first);
      kept.pop_back();
    }
    if (below(100) == 0) cache.empty();
    if (below(20) == 0) {
      const auto stats = cache.stats();
      if (stats.allocated_bytes[0].current < 0) ++failures;
    }
  }
  for (const auto& [block, bytes] : kept) cache.free(block);
  oregStreamSynchronize(handle);
  oregStreamSynchronize(other);
}

TEST(DeviceCache, ThreadsAndStreamsThatShareADevice) {
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int index = 0; index < kThreads; ++index) {
    threads.emplace_back(work_on, static_cast<c10::DeviceIndex>(index % 2), 1234 + index,
                         std::ref(failures));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  for (c10::DeviceIndex device = 0; device < 2; ++device) {
    const DeviceScope scope(device);
    DeviceCache& cache = cache_of(device);
    EXPECT_EQ(oregDeviceSynchronize(), oregSuccess);
    cache.empty();
    EXPECT_EQ(oregDeviceSynchronize(), oregSuccess);
    const auto stats = cache.stats();
    EXPECT_EQ(stats.allocated_bytes[0].current, 0);
    EXPECT_EQ(stats.active_bytes[0].current, 0);
    EXPECT_EQ(stats.reserved_bytes[0].current, 0);
    EXPECT_EQ(stats.segment[0].current, 0);
    EXPECT_EQ(stats.allocation[0].allocated, stats.allocation[0].freed);
    EXPECT_EQ(stats.allocation[0].allocated, kThreads / 2 * kRounds * 2);
    size_t free = 0;
    size_t total = 0;
    EXPECT_EQ(oregMemGetInfo(&free, &total), oregSuccess);
    EXPECT_EQ(free, total);
  }
}

}  // namespace
}  // namespace openreg
