// What the device memory cache hands out and keeps.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "openreg.h"

namespace openreg {

// A part of a segment, which is one allocation of the driver. It is the context of every DataPtr
// that the allocator hands out, and outlives the tensor: freed blocks wait in the cache for the
// next request.
struct Block {
  void* pointer;
  size_t size;           // bytes, rounded up to the size class
  size_t requested = 0;  // bytes, as asked for by the present owner
  c10::DeviceIndex device;
  bool is_small;            // of a segment for small blocks: how statistics count it
  bool is_free = false;     // in the pool's set of free blocks
  uint16_t pool;            // index of the pool that it belongs to
  Block* next = nullptr;    // in the pool's list of freed blocks of this size
  Block* before = nullptr;  // the neighbours in the segment
  Block* after = nullptr;
  uint64_t freed_at = 0;   // of a free block, on the cache's clock
  int pending_events = 0;  // of a freed block that other streams still use
  // Streams, besides the pool's, that the owner has used the block on; mostly null.
  std::unique_ptr<std::vector<oregStream_t>> other_streams = nullptr;
  // What kernels keep about the block from one call to the next; released with the block.
  std::atomic<c10::intrusive_ptr_target*> attachment{nullptr};
};

}  // namespace openreg
