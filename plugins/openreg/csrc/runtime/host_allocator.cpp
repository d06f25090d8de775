#include "runtime/host_allocator.h"

// The header uses a constant that GCC warns about, because it may differ between compilers.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winterference-size"
#endif
#include <ATen/core/CachingHostAllocator.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#include <c10/core/Event.h>

#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/stream.h"

namespace openreg {
namespace {

// PyTorch's own cache of host memory, on this driver.
class HostCache final : public at::CachingHostAllocatorImpl<c10::Stream, c10::Event> {
 private:
  void allocate_host_memory(size_t bytes, void** pointer) override {
    ensure_initialized();
    OREG_CHECK(oregMallocHost(pointer, bytes));
  }

  void free_block(at::HostBlock<c10::Stream>* block) override {
    // No work uses the block any more, so that there is nothing to wait for.
    OREG_CHECK(oregFreeHostAsync(block->ptr_, current_driver_stream(current_device())));
  }

  void record_stream(std::optional<std::vector<c10::Event>>& events, c10::Stream stream) override {
    if (oregIsInBadFork() != 0) return;  // no device, no work
    events->emplace_back(c10::DeviceType::PrivateUse1).record(stream);
  }

  bool query_event(c10::Event& event) override { return event.query(); }

  c10::Stream get_current_stream() const override { return current_stream(current_device()); }
  bool stream_is_capturing(c10::Stream) const override { return false; }
};

void free_pinned(void* block);

class PinnedAllocator final : public at::CachingHostAllocatorInterface<HostCache, free_pinned> {};

// Leaked: tensors are freed until the very end of the process.
PinnedAllocator& allocator() {
  static auto* made = new PinnedAllocator();
  return *made;
}

void free_pinned(void* block) { allocator().free(block); }

}  // namespace

void register_pinned_allocator() {
  at::setHostAllocator(c10::DeviceType::PrivateUse1, &allocator());
}

c10::Allocator& pinned_allocator() { return allocator(); }

bool is_pinned(const void* pointer) {
  if (oregIsInitialized() == 0 || oregIsInBadFork() != 0) return false;
  oregPointerAttributes attributes{};
  OREG_CHECK(oregPointerGetAttributes(&attributes, pointer));
  return attributes.type == oregMemoryTypeHost;
}

bool record_pinned_on_stream(const c10::Storage& storage, const c10::Stream& stream) {
  const c10::DataPtr& pointer = storage.data_ptr();
  return allocator().record_event(pointer.get(), pointer.get_context(), stream);
}

}  // namespace openreg
