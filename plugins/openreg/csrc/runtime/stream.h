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

// The id of the stream that has this handle; 0, the default stream's, if it is none of the pool.
c10::StreamId stream_id_of(c10::DeviceIndex device, oregStream_t handle);

// Index of the memory pool that the calling thread allocates from. Each stream has two: one for the
// threads that submit work to it, and one for what queued kernels allocate while they run. A worker
// must not be given what the submitting thread has freed meanwhile: work that is still queued may
// use it.
uint16_t current_pool(c10::DeviceIndex device);
inline bool is_worker_pool(uint16_t pool) { return pool % 2 == 1; }

// On a worker thread, while it runs a kernel that was queued on the stream: makes the stream
// current and its worker's pool the one to allocate from.
class QueuedKernelScope {
 public:
  explicit QueuedKernelScope(const c10::Stream& stream);
  ~QueuedKernelScope();
  QueuedKernelScope(const QueuedKernelScope&) = delete;
  QueuedKernelScope& operator=(const QueuedKernelScope&) = delete;

 private:
  c10::Stream previous_;
  bool was_on_worker_;
};

}  // namespace openreg
