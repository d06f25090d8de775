#include "runtime/allocator.h"

#include <algorithm>

#include "runtime/block_table.h"
#include "runtime/device.h"
#include "runtime/device_cache.h"
#include "runtime/error.h"
#include "runtime/gil.h"
#include "runtime/stream.h"

namespace openreg {
namespace {

class CachingAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    ensure_initialized();
    const c10::DeviceIndex device = current_device();
    if (bytes == 0) return {nullptr, device_at(device)};
    return own_block(allocate_block(bytes, device));
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }  // a pointer alone does not name its block

  void copy_data(void* dest, const void* src, size_t count) const override {
    const Block* block = find_block(dest);
    TORCH_CHECK(block != nullptr, "The memory to copy to was not allocated by this allocator.");
    const oregStream_t stream = current_driver_stream(block->device);
    OREG_CHECK(oregMemcpyAsync(dest, src, count, oregMemcpyDeviceToDevice, stream));
  }

  bool initialized() override { return oregIsInitialized() != 0; }

  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex device = 0; device < device_count(); ++device) cache_of(device).empty();
  }

  void recordStream(const c10::DataPtr& pointer, c10::Stream stream) override {
    record_on_stream(pointer, driver_stream(stream));
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return cache_of(checked_index(device)).stats();
  }

  void resetAccumulatedStats(c10::DeviceIndex device) override {
    cache_of(checked_index(device)).reset_accumulated_stats();
  }

  void resetPeakStats(c10::DeviceIndex device) override {
    cache_of(checked_index(device)).reset_peak_stats();
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    size_t free = 0;
    size_t total = 0;
    const DeviceScope scope(checked_index(device));
    OREG_CHECK(oregMemGetInfo(&free, &total));
    return {free, total};
  }
};

}  // namespace

c10::DeviceAllocator& device_allocator() {
  static auto* allocator = new CachingAllocator();
  return *allocator;
}

Block* allocate_block(size_t bytes, c10::DeviceIndex device) {
  return cache_of(device).allocate(bytes);
}

void free_block(void* block) {
  // In a forked child there is no device, and the cache's lock may be held by a thread of the
  // parent.
  if (C10_UNLIKELY(oregIsInBadFork() != 0)) return;
  auto* freed = static_cast<Block*>(block);
  cache_of(freed->device).free(freed);
}

Block* find_block(const void* pointer) { return block_table.find(pointer); }

c10::DataPtr own_block(Block* block) {
  return {block->pointer, block, &free_block, device_at(block->device)};
}

Block* block_of(const c10::DataPtr& pointer) {
  return pointer.get_deleter() == &free_block ? static_cast<Block*>(pointer.get_context())
                                              : nullptr;
}

void record_on_stream(const c10::DataPtr& pointer, oregStream_t stream) {
  if (Block* block = block_of(pointer)) cache_of(block->device).record_stream(block, stream);
}

void set_memory_fraction(double fraction, c10::DeviceIndex device) {
  TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1, "The memory fraction must be from 0 to 1, not ",
                    fraction, ".");
  oregDeviceProp properties{};
  OREG_CHECK(oregGetDeviceProperties(&properties, device));
  const auto total = static_cast<double>(properties.totalMemory);
  cache_of(device).set_limit(static_cast<size_t>(total * fraction));
}

void resize_storage(c10::StorageImpl& storage, size_t bytes) {
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  const c10::Device device = storage.device();
  // Queued kernels find their bytes through the storage: they come first.
  if (oregIsInKernel() == 0) {
    const WithoutGil without_gil;
    synchronize_device(device.index());
  }
  c10::DataPtr resized =
      bytes == 0 ? c10::DataPtr(nullptr, device) : own_block(allocate_block(bytes, device.index()));
  const size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) {
    const oregStream_t stream = current_driver_stream(device.index());
    OREG_CHECK(
        oregMemcpyAsync(resized.get(), storage.data(), kept, oregMemcpyDeviceToDevice, stream));
    record_on_stream(storage.data_ptr(), stream);  // the copy may still be queued
  }
  storage.set_data_ptr_noswap(std::move(resized));
  storage.set_nbytes(bytes);
}

}  // namespace openreg
