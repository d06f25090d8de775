#include "host_memory.h"

#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>

#include "error.h"

namespace openreg {
namespace {

constexpr std::size_t kAlignment = 4096;

std::uintptr_t addressOf(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

[[noreturn]] void failUnknown(const void* pointer) {
  fail(oregErrorInvalidValue, "%p is no live allocation of oregMallocHost", pointer);
}

}  // namespace

void* HostMemory::allocate(std::size_t bytes) {
  void* pointer = nullptr;
  if (posix_memalign(&pointer, kAlignment, bytes) != 0) {
    fail(oregErrorMemoryAllocation, "the host cannot allocate %zu bytes", bytes);
  }
  std::unique_ptr<void, decltype(&std::free)> owned(pointer, &std::free);
  const std::lock_guard lock(mutex_);
  sizes_.emplace(addressOf(pointer), bytes);
  return owned.release();
}

void HostMemory::retire(const void* pointer) {
  const std::lock_guard lock(mutex_);
  if (sizes_.erase(addressOf(pointer)) == 0) failUnknown(pointer);
}

void HostMemory::reclaim(void* pointer) { std::free(pointer); }

std::optional<std::size_t> HostMemory::bytesFrom(const void* pointer) const {
  const std::shared_lock lock(mutex_);
  const auto next = sizes_.upper_bound(addressOf(pointer));
  if (next == sizes_.begin()) return std::nullopt;
  const auto& [start, size] = *std::prev(next);
  const std::size_t distance = addressOf(pointer) - start;
  if (distance >= size) return std::nullopt;
  return size - distance;
}

}  // namespace openreg
