// The cache of one device's memory: takes segments from the driver, splits them into blocks, and
// keeps freed blocks for the next request.
//
// Every stream has a pool of its own. A block that is freed may be handed out again at once to the
// same stream, although work that uses it is still queued there: what uses it next comes later in
// the same queue. A block that was also used on other streams waits until they have passed the
// point at which it was freed. So does one that is freed while another thread runs a kernel, which
// may allocate in the middle of the queue.
//
// In a pool, a freed block first goes to a list of blocks of exactly its size, which is where most
// requests find theirs. Only when a request finds none are the blocks of those lists merged with
// their free neighbours, and the best fit is split.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "runtime/block.h"

namespace openreg {

class DeviceCache {
 public:
  using Stats = c10::CachingDeviceAllocator::DeviceStats;

  explicit DeviceCache(c10::DeviceIndex device) : device_(device) {}

  // At least `bytes` bytes (more than 0) from the calling thread's present pool. Throws
  // torch.OutOfMemoryError when the device has not that much left after the cache was emptied.
  Block* allocate(size_t bytes);
  void free(Block* block);

  // The block is in use on the stream too, until what the stream has been given when the block is
  // freed has finished.
  void record_stream(Block* block, oregStream_t stream);

  // Around a kernel that runs on the calling thread, its wait for its turn included.
  void kernel_begins() { kernels_.fetch_add(1, std::memory_order_relaxed); }
  void kernel_ends() { kernels_.fetch_sub(1, std::memory_order_relaxed); }

  // Gives what is not in use back to the driver.
  void empty();

  // Bytes that the cache may hold at most; SIZE_MAX: as many as the device has.
  void set_limit(size_t bytes);

  Stats stats();
  void reset_accumulated_stats();
  void reset_peak_stats();

 private:
  static constexpr size_t kClasses = 4 * 15;  // four per power of two from 512 bytes to 8 MiB

  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->size != b->size ? a->size < b->size : a->pointer < b->pointer;
    }
    using is_transparent = void;
    bool operator()(const Block* block, size_t size) const { return block->size < size; }
    bool operator()(size_t size, const Block* block) const { return size < block->size; }
  };
  using FreeBlocks = std::set<Block*, BySize>;

  struct Pool {
    oregStream_t stream;
    std::array<Block*, kClasses> freed{};  // by size class; not merged
    bool has_freed = false;                // perhaps
    FreeBlocks small;                      // merged
    FreeBlocks large;
    FreeBlocks& free_blocks(bool is_small) { return is_small ? small : large; }
  };

  struct PendingEvent {
    oregEvent_t event;
    Block* block;
  };
  using Lock = std::unique_lock<std::mutex>;

  static size_t size_class_bytes(size_t bytes);
  static size_t size_class_index(size_t size);

  Pool& present_pool(uint16_t index);
  Block* take_freed(Pool& pool, size_t size);
  Block* take_free(Pool& pool, size_t size);
  Block* take_any(Pool& pool, size_t size);
  void split(Pool& pool, Block* block, size_t size);

  void make_available(Block* block);
  void insert_merged(Pool& pool, Block* block);
  Block* merge_with(Pool& pool, Block* block, Block* neighbour);
  void merge_freed(Pool& pool);

  void add_pending_events(Block* block, const std::vector<oregStream_t>& streams);
  void collect_finished_events();
  void wait_for_events(Lock& lock);
  void wait_for_streams(Lock& lock);

  Block* find_or_reserve(Lock& lock, uint16_t pool_index, size_t size, size_t requested);
  Block* reserve(uint16_t pool_index, size_t size);
  Block* reserve_segment(uint16_t pool_index, size_t size, bool is_small);
  size_t available_bytes() const;  // that can still be reserved
  size_t release_free_segments(size_t wanted);
  void release_segment(Pool& pool, Block* block);
  static void forget(Block* block);
  [[noreturn]] void throw_out_of_memory(size_t requested);

  template <class Change>
  void count_owned(const Block& block, Change change);
  template <class Change>
  void count_active(const Block& block, Change change);
  template <class Change>
  void count_inactive(const Block& block, Change change);
  template <class Action>
  void for_each_stat(Action action);

  const c10::DeviceIndex device_;
  std::mutex mutex_;  // held for moments only: never while something is waited for
  std::vector<std::unique_ptr<Pool>> pools_;
  std::deque<PendingEvent> pending_;
  std::atomic<int> kernels_ = 0;  // on threads of the program; ordered by the streams' own locks
  size_t limit_ = SIZE_MAX;
  uint64_t clock_ = 0;
  Stats stats_;
};

DeviceCache& cache_of(c10::DeviceIndex device);

}  // namespace openreg
