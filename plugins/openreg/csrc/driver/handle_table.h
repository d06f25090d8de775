// The live streams, or events, of the process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "error.h"

namespace openreg {

// Gives out handles that stay safe to use after they are destroyed. A handle is no pointer: it
// holds the number of a slot and the slot's generation, which changes when the handle is destroyed,
// so that a stale or foreign handle is recognized without a lock. Slots are reused and never freed.
template <typename T, typename Handle>
class HandleTable {
 public:
  // kind: what messages call a T. tag: 1 to 3, tells the handles of one table from those of
  // another.
  HandleTable(const char* kind, unsigned tag) : kind_(kind), tag_(tag) {}

  // Calls initialize(T&) on a slot of its own, then publishes it.
  template <typename Initialize>
  Handle create(Initialize&& initialize) {
    const std::lock_guard lock(mutex_);
    if (unused_.empty()) addChunk();
    const std::uint32_t index = unused_.back();
    Slot& slot = slotAt(index);
    initialize(slot.object);
    unused_.pop_back();
    const std::uint32_t generation = slot.generation.load(std::memory_order_relaxed) + 1;
    slot.generation.store(generation, std::memory_order_release);
    return encode(index, generation);
  }

  // Throws oregErrorInvalidResourceHandle unless the handle is live.
  T& find(Handle handle) const {
    Slot* slot = slotOf(handle);
    if (slot == nullptr || slot->generation.load(std::memory_order_acquire) != generationOf(handle))
        [[unlikely]] {
      failUnknown(handle);
    }
    return slot->object;
  }

  // The same for a handle that may have been destroyed since, as long as its slot was not reused.
  T& findRetired(Handle handle) const {
    Slot* slot = slotOf(handle);
    if (slot != nullptr &&
        slot->generation.load(std::memory_order_acquire) == generationOf(handle) + 1)
      return slot->object;
    return find(handle);
  }

  // Makes the handle invalid. The slot is reused after recycle(). Throws as find(), also for the
  // second of two threads.
  T& retire(Handle handle) {
    T& object = find(handle);
    std::uint32_t generation = generationOf(handle);
    if (!slotOf(handle)->generation.compare_exchange_strong(generation, generation + 1)) {
      failUnknown(handle);
    }
    return object;
  }

  void recycle(Handle handle) {
    const std::lock_guard lock(mutex_);
    unused_.push_back(indexOf(handle));  // never allocates: see addChunk()
  }

  // Calls visit(T&) on every slot: live, retired or unused.
  template <typename Visit>
  void forEach(Visit&& visit) const {
    const std::size_t count = chunkCount_.load(std::memory_order_acquire);
    for (std::size_t chunk = 0; chunk < count; ++chunk) {
      for (Slot& slot : *chunks_[chunk].load(std::memory_order_acquire)) visit(slot.object);
    }
  }

 private:
  struct Slot {
    T object;
    std::atomic<std::uint32_t> generation{0};  // odd while live
  };
  static constexpr std::size_t kChunkSize = 64;
  static constexpr std::size_t kMaxChunks = 16384;
  using Chunk = std::array<Slot, kChunkSize>;

  Handle encode(std::uint32_t index, std::uint32_t generation) const {
    return reinterpret_cast<Handle>(std::uintptr_t{generation} << 32 | std::uintptr_t{index} << 2 |
                                    tag_);
  }
  static std::uint32_t generationOf(Handle handle) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle) >> 32);
  }
  static std::uint32_t indexOf(Handle handle) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle)) >> 2;
  }

  Slot& slotAt(std::uint32_t index) const {
    return (*chunks_[index / kChunkSize].load(std::memory_order_acquire))[index % kChunkSize];
  }

  Slot* slotOf(Handle handle) const {
    const std::uint32_t index = indexOf(handle);
    const bool known = (reinterpret_cast<std::uintptr_t>(handle) & 3) == tag_ &&
                       index < chunkCount_.load(std::memory_order_acquire) * kChunkSize;
    return known && generationOf(handle) % 2 == 1 ? &slotAt(index) : nullptr;
  }

  void addChunk() {
    const std::size_t chunk = chunkCount_.load(std::memory_order_relaxed);
    if (chunk == kMaxChunks) {
      fail(oregErrorMemoryAllocation, "%zu %ss are in use, and the driver allows no more",
           kMaxChunks * kChunkSize, kind_);
    }
    unused_.reserve((chunk + 1) * kChunkSize);  // all slots: recycle() must not fail
    chunks_[chunk].store(new Chunk, std::memory_order_release);
    for (std::size_t i = kChunkSize; i > 0; --i) {
      unused_.push_back(static_cast<std::uint32_t>(chunk * kChunkSize + i - 1));
    }
    chunkCount_.store(chunk + 1, std::memory_order_release);
  }

  [[noreturn]] void failUnknown(Handle handle) const {
    fail(oregErrorInvalidResourceHandle, "%p is no live %s: it was destroyed, or never created",
         static_cast<void*>(handle), kind_);
  }

  const char* const kind_;
  const std::uintptr_t tag_;
  std::mutex mutex_;
  std::vector<std::uint32_t> unused_;
  std::array<std::atomic<Chunk*>, kMaxChunks> chunks_{};
  std::atomic<std::size_t> chunkCount_{0};
};

}  // namespace openreg
