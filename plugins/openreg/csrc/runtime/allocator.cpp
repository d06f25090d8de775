#include "runtime/allocator.h"

#include <c10/util/llvmMathExtras.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/stream.h"

namespace openreg {
namespace {

using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr size_t kAlignment = 512;  // the driver's; also the smallest size
constexpr size_t kSmallBytes =
    1 << 20;  // blocks up to here count as the small pool in the statistics
constexpr size_t kLargeStep = 2 << 20;  // blocks over 8 MiB are multiples of this
constexpr size_t kClassedBytes = 8 << 20;
constexpr size_t kClasses = 4 * 15;  // four per power of two from 512 bytes to 8 MiB

// Size classes are 512 bytes times 1, 1.25, 1.5, 1.75, 2, 2.5, ...: at most a fifth of a block is
// unused, and few classes mean that a freed block finds a new owner soon. Sizes under 2 KiB are
// multiples of 512.
size_t size_class_bytes(size_t bytes) {
  if (bytes <= 4 * kAlignment) return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes > kClassedBytes) return (bytes + kLargeStep - 1) / kLargeStep * kLargeStep;
  const size_t step = size_t{1} << (c10::llvm::Log2_64(bytes - 1) - 2);
  return (bytes + step - 1) / step * step;
}

// Only for rounded sizes up to kClassedBytes.
size_t size_class_index(size_t size) {
  const unsigned power = c10::llvm::Log2_64(size);
  return (power - 9) * 4 + ((size >> (power - 2)) & 3);
}

// Where each block starts, for callers that have only a pointer. A table in two levels, one
// gibibyte of addresses to a page of the second level, that readers need no lock for: a slot is
// written before anybody else can know its pointer.
class BlockTable {
 public:
  void set(const void* pointer, Block* block) {
    std::atomic<Page*>& entry = pages_[page_index(pointer)];
    Page* page = entry.load(std::memory_order_acquire);
    if (page == nullptr) {
      auto* made = static_cast<Page*>(
          std::calloc(1, sizeof(Page)));  // zero pages: memory is used where written
      TORCH_CHECK_WITH(OutOfMemoryError, made != nullptr,
                       "The host has no memory left for the table of device blocks.");
      if (entry.compare_exchange_strong(page, made, std::memory_order_acq_rel)) {
        page = made;
      } else {
        std::free(made);
      }
    }
    page->blocks[slot_index(pointer)].store(block, std::memory_order_release);
  }

  Block* find(const void* pointer) const {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    if (address % kAlignment != 0 || (address >> kAddressBits) != 0) return nullptr;
    const Page* page = pages_[page_index(pointer)].load(std::memory_order_acquire);
    return page == nullptr ? nullptr
                           : page->blocks[slot_index(pointer)].load(std::memory_order_acquire);
  }

 private:
  static constexpr unsigned kAddressBits = 47;
  static constexpr unsigned kPageBits = 30;
  struct Page {
    std::array<std::atomic<Block*>, (size_t{1} << kPageBits) / kAlignment> blocks;
  };

  static size_t page_index(const void* pointer) {
    return reinterpret_cast<uintptr_t>(pointer) >> kPageBits;
  }
  static size_t slot_index(const void* pointer) {
    return (reinterpret_cast<uintptr_t>(pointer) & ((uintptr_t{1} << kPageBits) - 1)) / kAlignment;
  }

  std::array<std::atomic<Page*>, size_t{1} << (kAddressBits - kPageBits)> pages_{};
};

BlockTable block_table;

class DeviceCache {
 public:
  Block* allocate(size_t bytes, c10::DeviceIndex device) {
    // PTRDIFF_MAX keeps the rounding below from wrapping; the driver refuses such a size with the
    // message.
    const size_t size = bytes > PTRDIFF_MAX ? bytes : size_class_bytes(bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    Block*& head = free_list(size);
    Block* block = head;
    if (C10_LIKELY(block != nullptr)) {
      head = block->next;
    } else {
      block = allocate_from_driver(size, bytes, device);
    }
    block->requested = bytes;
    count(*block, [](auto& stat, size_t amount) { stat.increase(amount); });
    return block;
  }

  void free(Block* block) {
    const std::lock_guard<std::mutex> lock(mutex_);
    count(*block, [](auto& stat, size_t amount) { stat.decrease(amount); });
    Block*& head = free_list(block->size);
    block->next = head;
    head = block;
  }

  void empty() {
    const std::lock_guard<std::mutex> lock(mutex_);
    release_cached();
  }

  DeviceStats stats() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }

  template <class Action>
  void for_each_stat(Action action) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto* array :
         {&stats_.allocation, &stats_.segment, &stats_.active, &stats_.allocated_bytes,
          &stats_.reserved_bytes, &stats_.active_bytes, &stats_.requested_bytes}) {
      for (auto& stat : *array) action(stat);
    }
  }

  void reset_counters() {
    for_each_stat([](auto& stat) { stat.reset_accumulated(); });
    const std::lock_guard<std::mutex> lock(mutex_);
    stats_.num_alloc_retries = stats_.num_ooms = stats_.num_device_alloc = stats_.num_device_free =
        0;
  }

 private:
  Block*& free_list(size_t size) {
    return size <= kClassedBytes ? classes_[size_class_index(size)] : large_[size];
  }

  static size_t pool_of(const Block& block) {
    return static_cast<size_t>(block.size <= kSmallBytes ? StatType::SMALL_POOL
                                                         : StatType::LARGE_POOL);
  }

  template <class Change>
  void count(const Block& block, Change change) {
    for (const size_t pool : {static_cast<size_t>(StatType::AGGREGATE), pool_of(block)}) {
      change(stats_.allocation[pool], 1);
      change(stats_.active[pool], 1);
      change(stats_.allocated_bytes[pool], block.size);
      change(stats_.active_bytes[pool], block.size);
      change(stats_.requested_bytes[pool], block.requested);
    }
  }

  template <class Change>
  void count_segment(const Block& block, Change change) {
    for (const size_t pool : {static_cast<size_t>(StatType::AGGREGATE), pool_of(block)}) {
      change(stats_.segment[pool], 1);
      change(stats_.reserved_bytes[pool], block.size);
    }
  }

  static oregError_t driver_malloc(void** pointer, size_t size, c10::DeviceIndex device) {
    const DeviceScope scope(device);
    return oregMalloc(pointer, size);
  }

  Block* allocate_from_driver(size_t size, size_t requested, c10::DeviceIndex device) {
    void* pointer = nullptr;
    oregError_t error = driver_malloc(&pointer, size, device);
    if (error == oregErrorMemoryAllocation &&
        stats_.reserved_bytes[0].current > stats_.allocated_bytes[0].current) {
      ++stats_.num_alloc_retries;
      release_cached();
      error = driver_malloc(&pointer, size, device);
    }
    if (error == oregErrorMemoryAllocation) {
      ++stats_.num_ooms;
      throw_out_of_memory(requested, device);
    }
    OREG_CHECK(error);
    ++stats_.num_device_alloc;
    auto* block = new Block{pointer, size, requested, device};
    block_table.set(pointer, block);
    count_segment(*block, [](auto& stat, size_t amount) { stat.increase(amount); });
    return block;
  }

  [[noreturn]] void throw_out_of_memory(size_t requested, c10::DeviceIndex device) const {
    oregGetLastError();
    size_t free = 0;
    size_t total = 0;
    const DeviceScope scope(device);
    OREG_CHECK(oregMemGetInfo(&free, &total));
    TORCH_CHECK_WITH(OutOfMemoryError, false, device_at(device),
                     " out of memory. Tried to allocate ", requested, " bytes. The device has ",
                     total, " bytes, of which ", free, " are free; PyTorch has ",
                     stats_.allocated_bytes[0].current, " bytes allocated and ",
                     stats_.reserved_bytes[0].current, " reserved.");
  }

  void release(Block* block) {
    if (auto* attachment = block->attachment.load()) c10::raw::intrusive_ptr::decref(attachment);
    count_segment(*block, [](auto& stat, size_t amount) { stat.decrease(amount); });
    ++stats_.num_device_free;
    block_table.set(block->pointer, nullptr);
    OREG_CHECK(oregFree(block->pointer));
    delete block;
  }

  void release_list(Block*& head) {
    while (head != nullptr) {
      Block* block = head;
      head = block->next;
      release(block);
    }
  }

  void release_cached() {
    for (Block*& head : classes_) release_list(head);
    for (auto& [size, head] : large_) release_list(head);
    large_.clear();
  }

  std::mutex mutex_;
  std::array<Block*, kClasses> classes_{};
  std::unordered_map<size_t, Block*> large_;
  DeviceStats stats_;
};

// Leaked: tensors are freed until the very end of the process.
DeviceCache& cache_of(c10::DeviceIndex device) {
  static auto* caches = new std::array<DeviceCache, 64>();
  return (*caches)[static_cast<size_t>(device)];
}

class CachingAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex device = current_device();
    if (bytes == 0) return {nullptr, device_at(device)};
    return own_block(allocate_block(bytes, device));
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }  // a pointer alone does not name its block

  void copy_data(void* dest, const void* src, size_t count) const override {
    OREG_CHECK(oregMemcpy(dest, src, count, oregMemcpyDeviceToDevice));
  }

  bool initialized() override { return oregIsInitialized() != 0; }

  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex device = 0; device < device_count(); ++device) cache_of(device).empty();
  }

  // Blocks go back to the cache in the order of the host's program and kernels finish before it
  // goes on, so no other stream can still be using a freed block.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}

  DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return cache_of(checked_index(device)).stats();
  }

  void resetAccumulatedStats(c10::DeviceIndex device) override {
    cache_of(checked_index(device)).reset_counters();
  }

  void resetPeakStats(c10::DeviceIndex device) override {
    cache_of(checked_index(device)).for_each_stat([](auto& stat) { stat.reset_peak(); });
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
  return cache_of(device).allocate(bytes, device);
}

void free_block(void* block) {
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

void resize_storage(c10::StorageImpl& storage, size_t bytes) {
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  const c10::Device device = storage.device();
  c10::DataPtr resized =
      bytes == 0 ? c10::DataPtr(nullptr, device) : own_block(allocate_block(bytes, device.index()));
  const size_t kept = std::min(bytes, storage.nbytes());
  if (kept > 0) {
    // The old bytes go back to the cache below, so that the copy cannot be left queued.
    OREG_CHECK(oregStreamSynchronize(current_driver_stream(device.index())));
    OREG_CHECK(oregMemcpy(resized.get(), storage.data(), kept, oregMemcpyDeviceToDevice));
  }
  storage.set_data_ptr_noswap(std::move(resized));
  storage.set_nbytes(bytes);
}

}  // namespace openreg
