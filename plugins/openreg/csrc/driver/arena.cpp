#include "arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

#include "error.h"

namespace openreg {

Arena::Arena(int device, std::uintptr_t base, std::size_t bytes, std::ptrdiff_t kernelOffset)
    : device_(device), total_(bytes), kernelOffset_(kernelOffset), free_(bytes) {
  blocks_.emplace(base, Block{bytes, 0});
  freeBySize_.emplace(bytes, base);
}

std::uintptr_t Arena::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t largest = freeBySize_.empty() ? 0 : freeBySize_.rbegin()->first;
  // Checked before rounding up, which could overflow.
  if (bytes > largest) {
    fail(oregErrorMemoryAllocation,
         "device %d cannot allocate %zu bytes: %zu of its %zu bytes are free, the largest free "
         "block has %zu",
         device_, bytes, free_, total_, largest);
  }
  // Blocks are multiples of kAlignment, so the largest still fits.
  const std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const auto best = freeBySize_.lower_bound({size, 0});
  const auto [available, address] = *best;

  // The one step that can fail comes first.
  if (available > size) blocks_.emplace(address + size, Block{available - size, 0});
  auto entry = freeBySize_.extract(best);
  if (available > size) {
    entry.value() = {available - size, address + size};
    freeBySize_.insert(std::move(entry));
  }
  blocks_.at(address) = {size, bytes};
  free_ -= size;
  return address;
}

void Arena::retire(std::uintptr_t address) {
  const std::lock_guard lock(mutex_);
  const auto block = std::prev(blocks_.upper_bound(address));
  if (block->second.requested == 0 || block->second.isRetired) {
    fail(oregErrorInvalidValue,
         "%p is in no allocation of device %d: it was freed before, or never allocated",
         reinterpret_cast<void*>(address), device_);
  }
  if (block->first != address) {
    fail(oregErrorInvalidValue,
         "%p lies %zu bytes inside the allocation of device %d that starts at %p: free the start",
         reinterpret_cast<void*>(address), address - block->first, device_,
         reinterpret_cast<void*>(block->first));
  }
  block->second.isRetired = true;
}

void Arena::reclaim(std::uintptr_t address) {
  const std::lock_guard lock(mutex_);
  auto block = blocks_.find(address);
  const std::uintptr_t end = address + block->second.size;

  auto first = block;
  auto last = block;
  if (block != blocks_.begin() && std::prev(block)->second.requested == 0) --first;
  if (std::next(block) != blocks_.end() && std::next(block)->second.requested == 0) ++last;
  const std::size_t size = last->first + last->second.size - first->first;

  // As above: what can fail comes before anything is changed.
  freeBySize_.emplace(size, first->first);
  if (first != block) freeBySize_.erase({first->second.size, first->first});
  if (last != block) freeBySize_.erase({last->second.size, last->first});
  free_ += block->second.size;
  blocks_.erase(std::next(first), std::next(last));
  first->second = {size, 0};
  discardPages(first, address, end);
}

// Under the lock, because a page must not be discarded when it is already someone else's.
void Arena::discardPages(Blocks::const_iterator merged, std::uintptr_t begin,
                         std::uintptr_t end) const {
  static const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  // The pages that this block shared with a neighbour are free only if the neighbour is.
  begin = begin / page * page;
  end = (end + page - 1) / page * page;
  if (begin < merged->first) begin += page;
  if (end > merged->first + merged->second.size) end -= page;
  if (begin < end)
    madvise(reinterpret_cast<char*>(begin) + kernelOffset_, end - begin, MADV_DONTNEED);
}

void Arena::requireRange(std::uintptr_t address, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto block = std::prev(blocks_.upper_bound(address));
  const std::size_t start = address - block->first;
  const std::size_t size = block->second.isRetired ? 0 : block->second.requested;
  if (start >= size) {
    fail(oregErrorInvalidValue, "%p is in no allocation of device %d",
         reinterpret_cast<void*>(address), device_);
  }
  if (bytes > size - start) {
    fail(
        oregErrorInvalidValue,
        "the %zu bytes at %p reach beyond their allocation on device %d, which has %zu bytes at %p",
        bytes, reinterpret_cast<void*>(address), device_, size,
        reinterpret_cast<void*>(block->first));
  }
}

std::size_t Arena::freeBytes() const {
  const std::lock_guard lock(mutex_);
  return free_;
}

}  // namespace openreg
