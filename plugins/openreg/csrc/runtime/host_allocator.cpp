#include "runtime/host_allocator.h"

#include "runtime/error.h"

namespace openreg {
namespace {

void free_host(void* pointer) {
  if (oregFreeHost(pointer) != oregSuccess) oregGetLastError();
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* pointer = nullptr;
    OREG_CHECK(oregMallocHost(&pointer, bytes));
    return {pointer, pointer, &free_host, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_host; }
  void copy_data(void* dest, const void* src, size_t count) const override {
    default_copy_data(dest, src, count);
  }
};

}  // namespace

c10::Allocator& pinned_allocator() {
  static auto* allocator = new PinnedAllocator();
  return *allocator;
}

bool is_pinned(const void* pointer) {
  if (oregIsInitialized() == 0 || oregIsInBadFork() != 0) return false;
  oregPointerAttributes attributes{};
  OREG_CHECK(oregPointerGetAttributes(&attributes, pointer));
  return attributes.type == oregMemoryTypeHost;
}

}  // namespace openreg
