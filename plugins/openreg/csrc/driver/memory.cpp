// Allocation on the devices and of host memory that they know.
#include <cstdint>

#include "driver.h"
#include "error.h"

using namespace openreg;

namespace {

std::uintptr_t addressOf(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// The first step of freeing; returns where the second is done.
Arena& retire(const Driver& driver, const void* pointer, const char* function) {
  const auto device = driver.windows.deviceOf(pointer);
  if (!device) {
    fail(oregErrorInvalidValue, "%p is host memory: %s takes what oregMalloc returned", pointer,
         function);
  }
  Arena& arena = driver.devices[*device]->arena;
  arena.retire(addressOf(pointer));
  return arena;
}

}  // namespace

oregError_t oregMalloc(void** pointer, size_t bytes) {
  return guarded([&] {
    requireResult(pointer, "pointer");
    Arena& arena = Driver::get().devices[currentDevice]->arena;
    *pointer = bytes == 0 ? nullptr : reinterpret_cast<void*>(arena.allocate(bytes));
  });
}

oregError_t oregFree(void* pointer) {
  return guarded([&] {
    if (pointer == nullptr) return;
    const Driver& driver = Driver::get();
    Arena& arena = retire(driver, pointer, "oregFree");
    driver.waitForAllStreams();  // of other devices too: they may be copying from or to this one
    arena.reclaim(addressOf(pointer));
  });
}

oregError_t oregFreeAsync(void* pointer, oregStream_t handle) {
  return guarded([&] {
    if (pointer == nullptr) return;
    const Driver& driver = Driver::get();
    Stream& stream = driver.stream(handle);
    Arena& arena = retire(driver, pointer, "oregFreeAsync");
    stream.submit([&arena, pointer] {
      arena.reclaim(addressOf(pointer));
      return oregSuccess;
    });
  });
}

oregError_t oregMemGetInfo(size_t* free, size_t* total) {
  return guarded([&] {
    requireResult(free, "free");
    requireResult(total, "total");
    const Arena& arena = Driver::get().devices[currentDevice]->arena;
    *free = arena.freeBytes();
    *total = arena.totalBytes();
  });
}

oregError_t oregMallocHost(void** pointer, size_t bytes) {
  return guarded([&] {
    requireResult(pointer, "pointer");
    HostMemory& memory = Driver::get().hostMemory;
    *pointer = bytes == 0 ? nullptr : memory.allocate(bytes);
  });
}

oregError_t oregFreeHost(void* pointer) {
  return guarded([&] {
    if (pointer == nullptr) return;
    Driver& driver = Driver::get();
    driver.hostMemory.retire(pointer);
    driver.waitForAllStreams();
    HostMemory::reclaim(pointer);
  });
}

oregError_t oregFreeHostAsync(void* pointer, oregStream_t handle) {
  return guarded([&] {
    if (pointer == nullptr) return;
    Driver& driver = Driver::get();
    Stream& stream = driver.stream(handle);
    driver.hostMemory.retire(pointer);
    stream.submit([pointer] {
      HostMemory::reclaim(pointer);
      return oregSuccess;
    });
  });
}

oregError_t oregPointerGetAttributes(oregPointerAttributes* attributes, const void* pointer) {
  return guarded([&] {
    requireResult(attributes, "attributes");
    if (pointer == nullptr) fail(oregErrorInvalidValue, "the pointer to ask about is null");
    if (Driver::isForked()) Driver::get();  // throws: the answer may have changed in the parent
    const Driver* driver = Driver::getIfStarted();
    oregPointerAttributes answer{oregMemoryTypeUnregistered, -1};
    // Before the driver is started no memory is known; asking does not start it.
    if (driver != nullptr) {
      if (const auto device = driver->windows.deviceOf(pointer)) {
        driver->devices[*device]->arena.requireRange(addressOf(pointer), 1);
        answer = {oregMemoryTypeDevice, *device};
      } else if (driver->hostMemory.bytesFrom(pointer)) {
        answer.type = oregMemoryTypeHost;
      }
    }
    *attributes = answer;
  });
}
