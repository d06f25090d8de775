// Pinned host memory: memory of the host that the driver knows, for copies that do not wait.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>
#include <c10/core/Stream.h>

namespace openreg {

// Registers the allocator of pinned memory, a cache, with PyTorch.
void register_pinned_allocator();
c10::Allocator& pinned_allocator();

// Also true inside a block. Starts nothing: before the driver is in use, and in a
// forked child, no memory is pinned.
bool is_pinned(const void* pointer);

// Work on the stream uses the storage's pinned memory: the cache does not hand it out again before
// that has finished. False if the memory is not the cache's.
bool record_pinned_on_stream(const c10::Storage& storage, const c10::Stream& stream);

}  // namespace openreg
