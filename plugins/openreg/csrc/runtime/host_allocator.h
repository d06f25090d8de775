// Pinned host memory: memory of the host that the driver knows, for copies that do not wait.
#pragma once

#include <c10/core/Allocator.h>

namespace openreg {

c10::Allocator& pinned_allocator();

// Also true inside a block. Starts nothing: before the driver is in use, and in a
// forked child, no memory is pinned.
bool is_pinned(const void* pointer);

}  // namespace openreg
