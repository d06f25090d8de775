// Host memory that the driver knows (page-locked memory, in CUDA's terms): copies from and to it
// can be queued, because it cannot disappear before oregFreeHost, which waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

namespace openreg {

class HostMemory {
 public:
  // bytes > 0. Throws oregErrorMemoryAllocation.
  void* allocate(std::size_t bytes);

  // Freeing is done in two steps, because work that uses the allocation may still be queued. After
  // the first the memory is not known any more. retire() throws oregErrorInvalidValue unless an
  // allocation starts at the pointer.
  void retire(const void* pointer);
  static void reclaim(void* pointer);

  // Bytes from the pointer to the end of the allocation it is in; nullopt for other memory.
  std::optional<std::size_t> bytesFrom(const void* pointer) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, std::size_t> sizes_;
};

}  // namespace openreg
