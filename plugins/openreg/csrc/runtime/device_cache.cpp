#include "runtime/device_cache.h"

#include <c10/util/llvmMathExtras.h>

#include <algorithm>

#include "runtime/block_table.h"
#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/stream.h"

namespace openreg {

BlockTable block_table;

namespace {

using c10::CachingAllocator::StatType;

constexpr size_t kAlignment = BlockTable::kAlignment;  // also the smallest size
constexpr size_t kSmallBytes = 1 << 20;                // blocks up to here share segments
constexpr size_t kSmallSegment = 2 << 20;
constexpr size_t kLargeStep = 2 << 20;  // blocks over 8 MiB are multiples of this
constexpr size_t kClassedBytes = 8 << 20;
constexpr size_t kLargestRest = 1 << 20;  // of a large block, what is not worth splitting off

constexpr auto increase = [](auto& stat, size_t amount) { stat.increase(amount); };
constexpr auto decrease = [](auto& stat, size_t amount) { stat.decrease(amount); };

// Which statistics a block counts in.
std::array<size_t, 2> stat_kinds(const Block& block) {
  return {static_cast<size_t>(StatType::AGGREGATE),
          static_cast<size_t>(block.is_small ? StatType::SMALL_POOL : StatType::LARGE_POOL)};
}

bool is_idle(oregStream_t stream) { return oregStreamQuery(stream) == oregSuccess; }

// Without taking note of an error that a kernel has left: it is for who waits for the results.
void wait_for_stream(oregStream_t stream) {
  int device = 0;
  OREG_CHECK(oregStreamGetDevice(stream, &device));
  const DeviceScope scope(static_cast<c10::DeviceIndex>(device));
  oregEvent_t event = nullptr;
  OREG_CHECK(oregEventCreateWithFlags(&event, oregEventDefault));
  OREG_CHECK(oregEventRecord(event, stream));
  OREG_CHECK(oregEventSynchronize(event));
  OREG_CHECK(oregEventDestroy(event));
}

}  // namespace

DeviceCache& cache_of(c10::DeviceIndex device) {
  // Leaked: tensors are freed until the very end of the process.
  static auto* caches = [] {
    auto* made = new std::vector<std::unique_ptr<DeviceCache>>();
    for (c10::DeviceIndex index = 0; index < device_count(); ++index)
      made->push_back(std::make_unique<DeviceCache>(index));
    return made;
  }();
  return *(*caches)[static_cast<size_t>(device)];
}

// ---- Sizes ----

// Size classes are 512 bytes times 1, 1.25, 1.5, 1.75, 2, 2.5, ...: at most a fifth of a block is
// unused, and few classes mean that a freed block finds a new owner soon. Sizes under 2 KiB are
// multiples of 512.
size_t DeviceCache::size_class_bytes(size_t bytes) {
  if (bytes <= 4 * kAlignment) return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes > kClassedBytes) return (bytes + kLargeStep - 1) / kLargeStep * kLargeStep;
  const size_t step = size_t{1} << (c10::llvm::Log2_64(bytes - 1) - 2);
  return (bytes + step - 1) / step * step;
}

// Only for rounded sizes up to kClassedBytes.
size_t DeviceCache::size_class_index(size_t size) {
  const unsigned power = c10::llvm::Log2_64(size);
  return (power - 9) * 4 + ((size >> (power - 2)) & 3);
}

// ---- Requests ----

Block* DeviceCache::allocate(size_t bytes) {
  const uint16_t index = current_pool(device_);
  // PTRDIFF_MAX keeps the rounding from wrapping; the driver refuses such a size.
  const size_t size = bytes > PTRDIFF_MAX ? bytes : size_class_bytes(bytes);
  Lock lock(mutex_);
  if (C10_UNLIKELY(!pending_.empty())) collect_finished_events();
  Pool& pool = present_pool(index);
  Block* block = take_freed(pool, size);
  if (C10_UNLIKELY(block == nullptr)) block = find_or_reserve(lock, index, size, bytes);
  block->requested = bytes;
  count_owned(*block, increase);
  count_active(*block, increase);
  return block;
}

void DeviceCache::free(Block* block) {
  const std::lock_guard<std::mutex> lock(mutex_);
  count_owned(*block, decrease);
  if (C10_UNLIKELY(block->other_streams != nullptr)) {
    const auto streams = std::exchange(block->other_streams, nullptr);
    add_pending_events(block, *streams);
  } else if (C10_UNLIKELY(is_worker_pool(block->pool) && current_pool(device_) != block->pool)) {
    // A worker allocated it, and is perhaps behind the thread that frees it.
    add_pending_events(block, {pools_[block->pool]->stream});
  } else if (C10_UNLIKELY(kernels_.load(std::memory_order_relaxed) > 0 && oregIsInKernel() == 0)) {
    // Another thread's kernel would get the block, and run before what is queued here.
    add_pending_events(block, {pools_[block->pool]->stream});
  }
  if (C10_LIKELY(block->pending_events == 0)) make_available(block);
}

void DeviceCache::record_stream(Block* block, oregStream_t stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stream == pools_[block->pool]->stream) return;
  if (block->other_streams == nullptr)
    block->other_streams = std::make_unique<std::vector<oregStream_t>>();
  auto& streams = *block->other_streams;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

void DeviceCache::empty() {
  Lock lock(mutex_);
  if (!pending_.empty() && oregIsInKernel() == 0) wait_for_events(lock);
  release_free_segments(SIZE_MAX);
}

void DeviceCache::set_limit(size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  limit_ = bytes;
}

DeviceCache::Pool& DeviceCache::present_pool(uint16_t index) {
  if (C10_UNLIKELY(index >= pools_.size())) pools_.resize(index + 1);
  std::unique_ptr<Pool>& pool = pools_[index];
  if (C10_UNLIKELY(pool == nullptr)) {
    pool = std::make_unique<Pool>();
    pool->stream = current_driver_stream(device_);
  }
  return *pool;
}

// ---- Blocks ----

Block* DeviceCache::take_freed(Pool& pool, size_t size) {
  if (size > kClassedBytes) return nullptr;
  Block*& head = pool.freed[size_class_index(size)];
  Block* block = head;
  if (block == nullptr) return nullptr;
  head = block->next;
  count_inactive(*block, decrease);
  return block;
}

// The best fit, split if what is left over can be used.
Block* DeviceCache::take_free(Pool& pool, size_t size) {
  FreeBlocks& blocks = pool.free_blocks(size <= kSmallBytes);
  const auto best = blocks.lower_bound(size);
  if (best == blocks.end()) return nullptr;
  Block* block = *best;
  blocks.erase(best);
  block->is_free = false;
  count_inactive(*block, decrease);
  split(pool, block, size);
  return block;
}

Block* DeviceCache::take_any(Pool& pool, size_t size) {
  if (Block* block = take_free(pool, size)) return block;
  if (!pool.has_freed) return nullptr;
  merge_freed(pool);
  return take_free(pool, size);
}

void DeviceCache::split(Pool& pool, Block* block, size_t size) {
  const size_t rest = block->size - size;
  if (rest == 0 || (!block->is_small && rest <= kLargestRest)) return;
  auto* other = new Block{.pointer = static_cast<char*>(block->pointer) + size,
                          .size = rest,
                          .device = device_,
                          .is_small = block->is_small,
                          .pool = block->pool,
                          .before = block,
                          .after = block->after};
  if (block->after != nullptr) block->after->before = other;
  block->after = other;
  block->size = size;
  block_table.set(other->pointer, other);
  insert_merged(pool, other);
}

void DeviceCache::make_available(Block* block) {
  count_active(*block, decrease);
  const size_t size = block->size;
  Pool& pool = *pools_[block->pool];
  // A large block may be somewhat larger than its class.
  if (C10_UNLIKELY(size > kClassedBytes || size != size_class_bytes(size))) {
    insert_merged(pool, block);
    return;
  }
  Block*& head = pool.freed[size_class_index(size)];
  block->next = head;
  head = block;
  pool.has_freed = true;
  count_inactive(*block, increase);
}

// Blocks in the lists of freed blocks are no free neighbours: to take one out of its list would
// need a search.
void DeviceCache::insert_merged(Pool& pool, Block* block) {
  if (block->before != nullptr && block->before->is_free)
    block = merge_with(pool, block->before, block);
  if (block->after != nullptr && block->after->is_free)
    block = merge_with(pool, block, block->after);
  block->is_free = true;
  block->freed_at = ++clock_;
  pool.free_blocks(block->is_small).insert(block);
  count_inactive(*block, increase);
}

// Joins two neighbours, one of which is in the set of free blocks; the result is in none.
Block* DeviceCache::merge_with(Pool& pool, Block* first, Block* second) {
  Block* listed = first->is_free ? first : second;
  pool.free_blocks(listed->is_small).erase(listed);
  listed->is_free = false;
  count_inactive(*listed, decrease);
  first->size += second->size;
  first->after = second->after;
  if (first->after != nullptr) first->after->before = first;
  forget(second);
  return first;
}

void DeviceCache::merge_freed(Pool& pool) {
  pool.has_freed = false;
  for (Block*& head : pool.freed) {
    while (head != nullptr) {
      Block* block = head;
      head = block->next;
      count_inactive(*block, decrease);
      insert_merged(pool, block);
    }
  }
}

// ---- Blocks that other streams use ----

void DeviceCache::add_pending_events(Block* block, const std::vector<oregStream_t>& streams) {
  for (const oregStream_t stream : streams) {
    if (is_idle(stream)) continue;
    int device = 0;
    OREG_CHECK(oregStreamGetDevice(stream, &device));
    const DeviceScope scope(static_cast<c10::DeviceIndex>(device));
    oregEvent_t event = nullptr;
    OREG_CHECK(oregEventCreateWithFlags(&event, oregEventDefault));
    pending_.push_back({event, block});
    OREG_CHECK(oregEventRecord(event, stream));
    ++block->pending_events;
  }
}

void DeviceCache::collect_finished_events() {
  std::erase_if(pending_, [this](const PendingEvent& pending) {
    if (oregEventQuery(pending.event) != oregSuccess) return false;
    OREG_CHECK(oregEventDestroy(pending.event));
    if (--pending.block->pending_events == 0) make_available(pending.block);
    return true;
  });
}

void DeviceCache::wait_for_events(Lock& lock) {
  ++stats_.num_sync_all_streams;
  const std::deque<PendingEvent> pending = pending_;
  lock.unlock();  // what is waited for may need memory of this device
  for (const PendingEvent& each : pending) {
    // Fails if another thread has found meanwhile that the event has passed.
    if (oregEventSynchronize(each.event) != oregSuccess) oregGetLastError();
  }
  lock.lock();
  collect_finished_events();
}

// What is queued includes the release of segments.
void DeviceCache::wait_for_streams(Lock& lock) {
  std::vector<oregStream_t> streams;
  for (const auto& pool : pools_) {
    if (pool != nullptr) streams.push_back(pool->stream);
  }
  lock.unlock();
  for (const oregStream_t stream : streams) wait_for_stream(stream);
  lock.lock();
}

// ---- Segments ----

Block* DeviceCache::find_or_reserve(Lock& lock, uint16_t pool_index, size_t size,
                                    size_t requested) {
  Pool& pool = *pools_[pool_index];
  if (Block* block = take_any(pool, size)) return block;
  if (Block* block = reserve(pool_index, size)) return block;

  // Under pressure: first the segments that have been unused for the longest, then all of them.
  ++stats_.num_alloc_retries;
  for (const size_t wanted : {size - std::min(size, available_bytes()), SIZE_MAX}) {
    if (release_free_segments(wanted) == 0) continue;
    if (Block* block = reserve(pool_index, size)) return block;
  }
  // What other streams still use comes free with time. A kernel must not wait: what it waits for
  // may be waiting for the kernel's own stream.
  if (oregIsInKernel() == 0) {
    wait_for_events(lock);
    wait_for_streams(lock);
    if (Block* block = take_any(pool, size)) return block;
    if (release_free_segments(SIZE_MAX) > 0) wait_for_streams(lock);
    if (Block* block = reserve(pool_index, size)) return block;
  }
  ++stats_.num_ooms;
  throw_out_of_memory(requested);
}

Block* DeviceCache::reserve(uint16_t pool_index, size_t size) {
  const bool is_small = size <= kSmallBytes;
  if (is_small) {
    if (Block* block = reserve_segment(pool_index, kSmallSegment, is_small)) {
      split(*pools_[pool_index], block, size);
      return block;
    }
  }
  return reserve_segment(pool_index, size, is_small);
}

// Null if the device has not enough memory, or the limit is reached.
Block* DeviceCache::reserve_segment(uint16_t pool_index, size_t size, bool is_small) {
  const auto reserved = static_cast<size_t>(stats_.reserved_bytes[0].current);
  if (size > limit_ || reserved > limit_ - size) return nullptr;
  void* pointer = nullptr;
  {
    const DeviceScope scope(device_);
    const oregError_t error = oregMalloc(&pointer, size);
    if (error == oregErrorMemoryAllocation) {
      oregGetLastError();
      return nullptr;
    }
    OREG_CHECK(error);
  }
  auto* block = new Block{.pointer = pointer,
                          .size = size,
                          .device = device_,
                          .is_small = is_small,
                          .pool = pool_index};
  block_table.set(pointer, block);
  ++stats_.num_device_alloc;
  for (const size_t kind : stat_kinds(*block)) {
    stats_.segment[kind].increase(1);
    stats_.reserved_bytes[kind].increase(size);
  }
  return block;
}

// Releases free segments in the order in which they came free, until `wanted` bytes are. Returns
// the number of bytes.
size_t DeviceCache::release_free_segments(size_t wanted) {
  std::vector<Block*> segments;
  for (const auto& pool : pools_) {
    if (pool == nullptr) continue;
    merge_freed(*pool);
    for (const FreeBlocks* blocks : {&pool->small, &pool->large}) {
      for (Block* block : *blocks) {
        if (block->before == nullptr && block->after == nullptr) segments.push_back(block);
      }
    }
  }
  std::sort(segments.begin(), segments.end(),
            [](const Block* a, const Block* b) { return a->freed_at < b->freed_at; });
  size_t released = 0;
  for (Block* block : segments) {
    if (released >= wanted) break;
    released += block->size;
    release_segment(*pools_[block->pool], block);
  }
  return released;
}

size_t DeviceCache::available_bytes() const {
  size_t free = 0;
  size_t total = 0;
  const DeviceScope scope(device_);
  OREG_CHECK(oregMemGetInfo(&free, &total));
  const auto reserved = static_cast<size_t>(stats_.reserved_bytes[0].current);
  return std::min(free, limit_ - std::min(limit_, reserved));
}

void DeviceCache::release_segment(Pool& pool, Block* block) {
  pool.free_blocks(block->is_small).erase(block);
  ++stats_.num_device_free;
  for (const size_t kind : stat_kinds(*block)) {
    stats_.segment[kind].decrease(1);
    stats_.reserved_bytes[kind].decrease(block->size);
  }
  void* pointer = block->pointer;
  forget(block);
  // In the stream's order: work that uses the segment may still be queued there.
  OREG_CHECK(oregFreeAsync(pointer, pool.stream));
}

void DeviceCache::forget(Block* block) {
  block_table.set(block->pointer, nullptr);
  if (auto* attachment = block->attachment.load()) c10::raw::intrusive_ptr::decref(attachment);
  delete block;
}

void DeviceCache::throw_out_of_memory(size_t requested) {
  size_t free = 0;
  size_t total = 0;
  const DeviceScope scope(device_);
  OREG_CHECK(oregMemGetInfo(&free, &total));
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, device_at(device_), " out of memory. Tried to allocate ", requested,
      " bytes. The device has ", total, " bytes, of which ", free, " are free; PyTorch has ",
      stats_.allocated_bytes[0].current, " bytes allocated and ", stats_.reserved_bytes[0].current,
      " reserved, and may reserve ", std::min(limit_, total), ".");
}

// ---- Statistics ----

template <class Change>
void DeviceCache::count_owned(const Block& block, Change change) {
  for (const size_t kind : stat_kinds(block)) {
    change(stats_.allocation[kind], 1);
    change(stats_.allocated_bytes[kind], block.size);
    change(stats_.requested_bytes[kind], block.requested);
  }
}

template <class Change>
void DeviceCache::count_active(const Block& block, Change change) {
  for (const size_t kind : stat_kinds(block)) {
    change(stats_.active[kind], 1);
    change(stats_.active_bytes[kind], block.size);
  }
}

// A block in the cache that is only a part of its segment cannot be given back by itself.
template <class Change>
void DeviceCache::count_inactive(const Block& block, Change change) {
  if (block.before == nullptr && block.after == nullptr) return;
  for (const size_t kind : stat_kinds(block)) {
    change(stats_.inactive_split[kind], 1);
    change(stats_.inactive_split_bytes[kind], block.size);
  }
}

template <class Action>
void DeviceCache::for_each_stat(Action action) {
  for (auto* array : {&stats_.allocation, &stats_.segment, &stats_.active, &stats_.inactive_split,
                      &stats_.allocated_bytes, &stats_.reserved_bytes, &stats_.active_bytes,
                      &stats_.inactive_split_bytes, &stats_.requested_bytes}) {
    for (auto& stat : *array) action(stat);
  }
}

DeviceCache::Stats DeviceCache::stats() {
  const std::lock_guard<std::mutex> lock(mutex_);
  collect_finished_events();  // so that what is not in use any more is not shown as active
  return stats_;
}

void DeviceCache::reset_accumulated_stats() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for_each_stat([](auto& stat) { stat.reset_accumulated(); });
  stats_.num_alloc_retries = stats_.num_ooms = stats_.num_sync_all_streams =
      stats_.num_device_alloc = stats_.num_device_free = 0;
}

void DeviceCache::reset_peak_stats() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for_each_stat([](auto& stat) { stat.reset_peak(); });
}

}  // namespace openreg
