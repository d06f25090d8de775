// PyTorch's allocator of device memory, in terms of the blocks of the devices' caches.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StorageImpl.h>

#include "runtime/block.h"

namespace openreg {

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

// Work on the stream uses the memory: it is not handed out again before that has finished.
void record_on_stream(const c10::DataPtr& pointer, oregStream_t stream);

// Lets PyTorch reserve at most this fraction, 0 to 1, of the device's memory.
void set_memory_fraction(double fraction, c10::DeviceIndex device);

// Gives a storage of this device `bytes` bytes and keeps what fits of its content, as
// UntypedStorage.resize_ does. The copy runs on the current stream.
void resize_storage(c10::StorageImpl& storage, size_t bytes);

}  // namespace openreg
