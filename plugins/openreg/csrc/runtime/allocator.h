// Device memory for tensors: a cache of the driver's allocations, one per device.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StorageImpl.h>

#include <atomic>

namespace openreg {

// One allocation of the driver. It is the context of every DataPtr that this allocator hands out,
// and outlives the tensor: freed blocks wait in the cache for the next request of their size.
struct Block {
  void* pointer;
  size_t size;       // bytes, rounded up to the size class
  size_t requested;  // bytes, as asked for by the present owner
  c10::DeviceIndex device;
  Block* next = nullptr;  // in the cache's free list
  // What kernels keep about the block from one call to the next; released with the block.
  std::atomic<c10::intrusive_ptr_target*> attachment{nullptr};
};

// The singleton, which is also registered as PyTorch's allocator for the device.
c10::DeviceAllocator& device_allocator();

// At least `bytes` bytes (more than 0) on `device`. Throws torch.OutOfMemoryError when the device
// has not that much left after the cache was emptied.
Block* allocate_block(size_t bytes, c10::DeviceIndex device);
void free_block(void* block);  // the DataPtr's deleter

// The block that starts at a device pointer, or null. Any address may be asked about.
Block* find_block(const void* pointer);

// The DataPtr that owns the block, and back. Null when another allocator made the pointer.
c10::DataPtr own_block(Block* block);
Block* block_of(const c10::DataPtr& pointer);

// Gives a storage of this device `bytes` bytes and keeps what fits of its content, as
// UntypedStorage.resize_ does.
void resize_storage(c10::StorageImpl& storage, size_t bytes);

}  // namespace openreg
