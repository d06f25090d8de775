// Where the tensors that a CPU kernel creates live while it runs for a device.
//
// A functional CPU kernel allocates its result itself. So that the result need not be copied,
// PyTorch's CPU allocator is wrapped: on a thread that is inside a kernel it hands out device
// memory, under the address at which kernels see it. Everywhere else it is the allocator that was
// there before. If another library has replaced the CPU allocator with a higher priority, the
// wrapper is not asked and results are copied instead.
#pragma once

#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <atomic>

namespace openreg {

// Once per process, when the module is imported.
void install_kernel_memory();

// Device whose memory this thread's CPU allocations come from; -1 for host memory. Returns the
// previous setting.
c10::DeviceIndex exchange_kernel_memory(c10::DeviceIndex device);

// How kernels see a block of device memory, kept from one call to the next.
struct KernelView final : c10::intrusive_ptr_target {
  explicit KernelView(c10::intrusive_ptr<c10::StorageImpl> bytes) : storage(std::move(bytes)) {}
  ~KernelView() override;

  // The CPU storage over the block's bytes: always the same object, so that PyTorch's own checks
  // for overlapping arguments work on aliases.
  const c10::intrusive_ptr<c10::StorageImpl> storage;
  // An alias that no call is using, owned; null if there is none.
  std::atomic<c10::TensorImpl*> spare_alias{nullptr};
};

// The view of a device storage's block. Null if its bytes are not a block of the allocator: it is
// empty, or has memory of another owner.
KernelView* kernel_view(const c10::Storage& device_storage);

// The CPU storage over the bytes of a device storage.
c10::Storage kernel_storage(const c10::Storage& device_storage);

// If the storage's bytes are device memory under the kernels' address, moves them into
// `device_storage`. Used for new results and for aliases that a kernel has resized. False if the
// bytes are something else.
bool take_device_memory(c10::StorageImpl& kernel_storage, c10::StorageImpl& device_storage);

// Turns a CPU storage with device memory into a storage of the device, in place. True also for one
// that is the device's already: several results may share one new storage. False if the bytes are
// the host's.
bool become_device_storage(c10::StorageImpl& storage, c10::DeviceIndex device);

}  // namespace openreg
