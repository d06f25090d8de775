// Finds the block that starts at an address, for callers that have only a pointer.
#pragma once

#include <array>
#include <atomic>
#include <cstdlib>

#include "runtime/block.h"

namespace openreg {

// A table in two levels, one gibibyte of addresses to a page of the second level, that readers need
// no lock for: a slot is written before anybody else can know its pointer.
class BlockTable {
 public:
  static constexpr size_t kAlignment = 512;  // of every block

  void set(const void* pointer, Block* block) {
    std::atomic<Page*>& entry = pages_[page_index(pointer)];
    Page* page = entry.load(std::memory_order_acquire);
    if (page == nullptr) {
      auto* made =
          static_cast<Page*>(std::calloc(1, sizeof(Page)));  // costs memory only where written
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

  // Null if no block starts there. Any address may be asked about.
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

extern BlockTable block_table;

}  // namespace openreg
