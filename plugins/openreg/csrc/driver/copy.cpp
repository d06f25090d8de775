// Copies between host and devices, and memset.
#include <cstdint>
#include <cstring>

#include "driver.h"
#include "error.h"

namespace openreg {
namespace {

// One side of a copy, checked.
struct Range {
  char* bytes;       // where this process can reach it
  bool canBeQueued;  // it stays allocated until queued work has finished
};

Range deviceRange(const Driver& driver, const void* pointer, size_t bytes, const char* name) {
  const auto device = driver.windows.deviceOf(pointer);
  if (!device) {
    fail(oregErrorInvalidValue, "%s (%p) is host memory, where device memory is needed", name,
         pointer);
  }
  driver.devices[*device]->arena.requireRange(reinterpret_cast<std::uintptr_t>(pointer), bytes);
  char* address = static_cast<char*>(const_cast<void*>(pointer));
  return {address + driver.windows.kernelOffset(), true};
}

Range hostRange(const Driver& driver, const void* pointer, size_t bytes, const char* name) {
  if (pointer == nullptr) fail(oregErrorInvalidValue, "%s is null", name);
  const auto available = driver.hostMemory.bytesFrom(pointer);
  if (available && *available < bytes) {
    fail(oregErrorInvalidValue,
         "the %zu bytes at %s (%p) reach beyond their allocation, which ends after %zu", bytes,
         name, pointer, *available);
  }
  return {static_cast<char*>(const_cast<void*>(pointer)), available.has_value()};
}

Range range(const Driver& driver, const void* pointer, size_t bytes, const char* name,
            bool onDevice, const char* kindName) {
  if (pointer != nullptr && driver.windows.deviceOf(pointer).has_value() != onDevice) {
    fail(oregErrorInvalidMemcpyDirection, "%s (%p) is %s memory, but %s needs %s memory there",
         name, pointer, onDevice ? "host" : "device", kindName, onDevice ? "device" : "host");
  }
  return onDevice ? deviceRange(driver, pointer, bytes, name)
                  : hostRange(driver, pointer, bytes, name);
}

struct Direction {
  bool toDevice;
  bool fromDevice;
  const char* name;
};

Direction directionOf(oregMemcpyKind kind) {
  switch (kind) {
    case oregMemcpyHostToHost:
      return {false, false, "oregMemcpyHostToHost"};
    case oregMemcpyHostToDevice:
      return {true, false, "oregMemcpyHostToDevice"};
    case oregMemcpyDeviceToHost:
      return {false, true, "oregMemcpyDeviceToHost"};
    case oregMemcpyDeviceToDevice:
      return {true, true, "oregMemcpyDeviceToDevice"};
  }
  fail(oregErrorInvalidMemcpyDirection, "%d is no oregMemcpyKind", static_cast<int>(kind));
}

// Runs the work in the order of the stream. If it must be done before the call returns, the call is
// a synchronization, and reports what failed before.
template <typename Work>
void submit(const Driver& driver, Stream& stream, const Launch& launch, bool blocking, Work work) {
  if (!blocking) return driver.launch(stream, launch, work);
  const std::lock_guard hold(stream);
  stream.throwKeptError();
  driver.launch(stream, launch, work);  // at once, because this thread holds the stream
}

void copy(void* dst, const void* src, size_t bytes, oregMemcpyKind kind, oregStream_t handle,
          bool blocking) {
  const Direction direction = directionOf(kind);
  const Driver& driver = Driver::get();
  Stream& stream = driver.stream(handle);
  if (bytes == 0) return;
  const Range to = range(driver, dst, bytes, "dst", direction.toDevice, direction.name);
  const Range from = range(driver, src, bytes, "src", direction.fromDevice, direction.name);
  submit(driver, stream, {oregActivityMemcpy, handle, bytes, kind},
         blocking || !to.canBeQueued || !from.canBeQueued, [to, from, bytes] {
           std::memmove(to.bytes, from.bytes, bytes);  // the ranges may overlap
           return oregSuccess;
         });
}

void set(void* dst, int value, size_t bytes, oregStream_t handle, bool blocking) {
  const Driver& driver = Driver::get();
  Stream& stream = driver.stream(handle);
  if (bytes == 0) return;
  const Range to = deviceRange(driver, dst, bytes, "dst");
  submit(driver, stream, {oregActivityMemset, handle, bytes}, blocking, [to, value, bytes] {
    std::memset(to.bytes, value, bytes);
    return oregSuccess;
  });
}

}  // namespace
}  // namespace openreg

using namespace openreg;

oregError_t oregMemcpy(void* dst, const void* src, size_t bytes, oregMemcpyKind kind) {
  return guarded([&] { copy(dst, src, bytes, kind, nullptr, true); });
}

oregError_t oregMemcpyAsync(void* dst, const void* src, size_t bytes, oregMemcpyKind kind,
                            oregStream_t stream) {
  return guarded([&] { copy(dst, src, bytes, kind, stream, false); });
}

oregError_t oregMemset(void* dst, int value, size_t bytes) {
  return guarded([&] { set(dst, value, bytes, nullptr, true); });
}

oregError_t oregMemsetAsync(void* dst, int value, size_t bytes, oregStream_t stream) {
  return guarded([&] { set(dst, value, bytes, stream, false); });
}
