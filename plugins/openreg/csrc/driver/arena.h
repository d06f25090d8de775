// The memory of one device: which ranges of its window are allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace openreg {

// Best fit: of the free blocks that are large enough the smallest is used, split if larger. A freed
// block merges with its free neighbours. Thread-safe.
class Arena {
 public:
  static constexpr std::size_t kAlignment = 512;

  // bytes: a multiple of kAlignment.
  Arena(int device, std::uintptr_t base, std::size_t bytes, std::ptrdiff_t kernelOffset);

  // bytes > 0. Throws oregErrorMemoryAllocation.
  std::uintptr_t allocate(std::size_t bytes);

  // Freeing is done in two steps, because work that uses the allocation may still be queued. After
  // the first the address is in no allocation any more; the second makes its memory available, and
  // gives whole pages back to the system. retire() throws oregErrorInvalidValue unless an
  // allocation starts at the address.
  void retire(std::uintptr_t address);
  void reclaim(std::uintptr_t address);

  // Throws oregErrorInvalidValue unless [address, address + bytes) lies inside one allocation.
  void requireRange(std::uintptr_t address, std::size_t bytes) const;

  std::size_t freeBytes() const;
  std::size_t totalBytes() const { return total_; }

 private:
  struct Block {
    std::size_t size;       // a multiple of kAlignment
    std::size_t requested;  // bytes asked for; 0: the block is free
    bool isRetired = false;
  };
  using Blocks = std::map<std::uintptr_t, Block>;  // by address; free and allocated, without gaps

  void discardPages(Blocks::const_iterator merged, std::uintptr_t begin, std::uintptr_t end) const;

  const int device_;
  const std::size_t total_;
  const std::ptrdiff_t kernelOffset_;

  mutable std::mutex mutex_;
  std::size_t free_;
  Blocks blocks_;
  std::set<std::pair<std::size_t, std::uintptr_t>> freeBySize_;
};

}  // namespace openreg
