#include "window.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "error.h"

namespace openreg {
namespace {

void* reserve(std::size_t bytes, int protection) {
  // MAP_NORESERVE: only the pages that are written count, not the size of the window.
  void* start =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start == MAP_FAILED ? nullptr : start;
}

}  // namespace

Windows::Windows(const Config& config)
    : bytesPerDevice_(config.memory), size_(config.memory * config.deviceCount()) {
  void* device = reserve(size_, PROT_NONE);
  void* kernel = device == nullptr ? nullptr : reserve(size_, PROT_READ | PROT_WRITE);
  if (kernel == nullptr) {
    const int cause = errno;
    if (device != nullptr) munmap(device, size_);
    fail(oregErrorInitialization,
         "cannot reserve address space for %d devices of %zu bytes (%s): set OPENREG_MEMORY or "
         "OPENREG_DEVICE_COUNT lower, or lift the limit (ulimit -v, vm.overcommit_memory)",
         config.deviceCount(), config.memory, std::strerror(cause));
  }
  // A forked child cannot use the device, so it gets no copy: the parent's writes then need not be
  // duplicated.
  madvise(kernel, size_, MADV_DONTFORK);
  base_ = reinterpret_cast<std::uintptr_t>(device);
  kernelOffset_ = static_cast<char*>(kernel) - static_cast<char*>(device);
}

}  // namespace openreg
