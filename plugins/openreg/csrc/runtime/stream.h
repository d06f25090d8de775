// Streams by PyTorch's ids: each thread's current stream per device, and the pool that new streams
// come from.
#pragma once

#include <c10/core/Stream.h>

#include "openreg.h"

namespace openreg {

// Id 0 is the device's default stream; the pool's streams have ids from 1.
oregStream_t driver_stream(const c10::Stream& stream);

c10::Stream default_stream(c10::DeviceIndex device);

// A stream of the device's pool, which is filled as streams are asked for and then reused in turn,
// as torch.cuda does: streams are handles that are copied freely and have no owner who could
// destroy them.
c10::Stream pooled_stream(c10::DeviceIndex device, int priority);

c10::Stream current_stream(c10::DeviceIndex device);

// Makes `stream` the calling thread's current one for the stream's device and returns the one that
// was.
c10::Stream exchange_stream(const c10::Stream& stream);

// The current stream's driver handle: what a kernel is launched on.
oregStream_t current_driver_stream(c10::DeviceIndex device);

}  // namespace openreg
