#include "runtime/stream.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "runtime/backward.h"
#include "runtime/device.h"
#include "runtime/error.h"

namespace openreg {
namespace {

constexpr int kMaxDevices = 64;          // the driver's own limit
constexpr c10::StreamId kPoolSize = 32;  // streams per device and priority, as torch.cuda keeps
constexpr int kPriorities = 2;           // 0 (normal) and -1 (high)

struct DeviceStreams {
  std::mutex mutex;
  oregStream_t default_stream = nullptr;
  std::array<oregStream_t, kPriorities * kPoolSize> pool{};  // index = id - 1
  std::array<c10::StreamId, kPriorities> next{};
};

// Leaked, because streams may be used by other threads until the process ends.
DeviceStreams& streams_of(c10::DeviceIndex device) {
  static auto* streams = new std::array<DeviceStreams, kMaxDevices>();
  return streams->at(static_cast<size_t>(device));
}

struct CurrentStream {
  c10::StreamId id = 0;
  oregStream_t handle = nullptr;  // looked up at first use
};
thread_local std::array<CurrentStream, kMaxDevices> current_streams;
thread_local bool on_worker = false;

c10::Stream stream_with_id(c10::DeviceIndex device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, device_at(device), id);
}

}  // namespace

oregStream_t driver_stream(const c10::Stream& stream) {
  TORCH_CHECK(stream.device_type() == c10::DeviceType::PrivateUse1, "Expected a stream of ",
              c10::get_privateuse1_backend(), ", but got one of ", stream.device());
  DeviceStreams& streams = streams_of(checked_index(stream.device_index()));
  const std::lock_guard<std::mutex> lock(streams.mutex);
  if (stream.id() == 0) {
    if (streams.default_stream == nullptr) {
      OREG_CHECK(oregDeviceGetDefaultStream(&streams.default_stream, stream.device_index()));
    }
    return streams.default_stream;
  }
  const auto slot = static_cast<size_t>(stream.id() - 1);
  TORCH_CHECK(slot < streams.pool.size() && streams.pool[slot] != nullptr, "No stream of ",
              stream.device(), " has the id ", stream.id(),
              ". Streams are made with torch.Stream, not from numbers.");
  return streams.pool[slot];
}

c10::Stream default_stream(c10::DeviceIndex device) {
  return stream_with_id(checked_index(device), 0);
}

c10::Stream pooled_stream(c10::DeviceIndex device, int priority) {
  ensure_initialized();
  device = checked_index(device);
  const int high = priority < 0 ? 1 : 0;  // out-of-range priorities are clamped, as CUDA does
  DeviceStreams& streams = streams_of(device);
  const std::lock_guard<std::mutex> lock(streams.mutex);
  const c10::StreamId slot = high * kPoolSize + streams.next[high];
  if (streams.pool[slot] == nullptr) {
    const DeviceScope scope(device);
    OREG_CHECK(oregStreamCreateWithPriority(&streams.pool[slot], -high));
  }
  streams.next[high] = (streams.next[high] + 1) % kPoolSize;
  return stream_with_id(device, slot + 1);
}

c10::Stream current_stream(c10::DeviceIndex device) {
  device = checked_index(device);
  return stream_with_id(device, current_streams[device].id);
}

c10::Stream exchange_stream(const c10::Stream& stream) {
  // Autograd exchanges streams for every node of a graph, mostly for the same one.
  const auto device = static_cast<size_t>(stream.device_index());
  if (device < current_streams.size() && current_streams[device].handle != nullptr &&
      current_streams[device].id == stream.id() &&
      stream.device_type() == c10::DeviceType::PrivateUse1) {
    return stream;
  }
  const oregStream_t handle = driver_stream(stream);
  CurrentStream& current = current_streams[device];
  const c10::Stream previous = stream_with_id(stream.device_index(), current.id);
  current = {stream.id(), handle};
  return previous;
}

oregStream_t current_driver_stream(c10::DeviceIndex device) {
  CurrentStream& current = current_streams[device];
  if (C10_UNLIKELY(current.handle == nullptr)) {  // this thread's first work on the device
    ensure_initialized();
    current.handle = driver_stream(default_stream(device));
    keep_backward_on_this_thread();
  }
  return current.handle;
}

c10::StreamId stream_id_of(c10::DeviceIndex device, oregStream_t handle) {
  DeviceStreams& streams = streams_of(device);
  const std::lock_guard<std::mutex> lock(streams.mutex);
  const auto found = std::find(streams.pool.begin(), streams.pool.end(), handle);
  return found == streams.pool.end() ? 0 : found - streams.pool.begin() + 1;
}

uint16_t current_pool(c10::DeviceIndex device) {
  return static_cast<uint16_t>(current_streams[device].id * 2 + (on_worker ? 1 : 0));
}

QueuedKernelScope::QueuedKernelScope(const c10::Stream& stream)
    : previous_(exchange_stream(stream)), was_on_worker_(std::exchange(on_worker, true)) {}

QueuedKernelScope::~QueuedKernelScope() {
  on_worker = was_on_worker_;
  exchange_stream(previous_);
}

}  // namespace openreg
