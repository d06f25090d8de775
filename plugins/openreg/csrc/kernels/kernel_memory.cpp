#include "kernels/kernel_memory.h"

#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/error.h"

namespace openreg {
namespace {

thread_local c10::DeviceIndex memory_device = -1;

ptrdiff_t kernel_offset() {
  static const ptrdiff_t offset = [] {
    ptrdiff_t value = 0;
    OREG_CHECK(oregGetKernelOffset(&value));
    return value;
  }();
  return offset;
}

void* kernel_address(void* device_pointer) {
  return device_pointer == nullptr ? nullptr : static_cast<char*>(device_pointer) + kernel_offset();
}

Block* block_at_kernel_address(void* address) {
  return find_block(static_cast<char*>(address) - kernel_offset());
}

// The context is the address itself, not the block: libraries like oneDNN ask PyTorch's CPU
// allocator for plain pointers (raw_allocate), which only works so.
void free_kernel_address(void* address) { free_block(block_at_kernel_address(address)); }

Block* release_kernel_block(c10::StorageImpl& storage) {
  if (storage.data_ptr().get_deleter() != &free_kernel_address) return nullptr;
  c10::DataPtr pointer = storage.set_data_ptr(c10::DataPtr(nullptr, c10::DeviceType::CPU));
  return block_at_kernel_address(pointer.release_context());
}

c10::Allocator* host_allocator = nullptr;  // PyTorch's CPU allocator before it was wrapped

// For pointers from raw_allocate, which may have been called inside a kernel or outside.
void free_any_address(void* address) {
  if (Block* block = oregIsInitialized() != 0 ? block_at_kernel_address(address) : nullptr) {
    free_block(block);
  } else {
    host_allocator->raw_deleter()(address);
  }
}

class KernelAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (C10_LIKELY(memory_device < 0) || bytes == 0) return host_allocator->allocate(bytes);
    void* address = kernel_address(allocate_block(bytes, memory_device)->pointer);
    return {address, address, &free_kernel_address, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return host_allocator->raw_deleter() == nullptr ? nullptr : &free_any_address;
  }
  void copy_data(void* dest, const void* src, size_t count) const override {
    default_copy_data(dest, src, count);
  }
};

KernelAllocator& kernel_allocator() {
  static auto* allocator = new KernelAllocator();
  return *allocator;
}

c10::intrusive_ptr<c10::StorageImpl> make_kernel_storage(const c10::StorageImpl& device_storage) {
  void* address = kernel_address(const_cast<void*>(device_storage.data()));
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), device_storage.nbytes(),
      c10::DataPtr(address, c10::DeviceType::CPU), &kernel_allocator(),
      /*resizable=*/true);
}

}  // namespace

void install_kernel_memory() {
  host_allocator = c10::GetAllocator(c10::DeviceType::CPU);
  c10::SetAllocator(c10::DeviceType::CPU, &kernel_allocator());
}

c10::DeviceIndex exchange_kernel_memory(c10::DeviceIndex device) {
  return std::exchange(memory_device, device);
}

KernelView::~KernelView() {
  if (c10::TensorImpl* alias = spare_alias.load()) c10::raw::intrusive_ptr::decref(alias);
}

KernelView* kernel_view(const c10::Storage& device_storage) {
  const c10::StorageImpl& impl = *device_storage.unsafeGetStorageImpl();
  Block* block = block_of(impl.data_ptr());
  if (block == nullptr) return nullptr;
  auto* view = static_cast<KernelView*>(block->attachment.load(std::memory_order_acquire));
  if (C10_UNLIKELY(view == nullptr)) {
    KernelView* made = c10::make_intrusive<KernelView>(make_kernel_storage(impl)).release();
    c10::intrusive_ptr_target* expected = nullptr;
    if (block->attachment.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) {
      view = made;
    } else {  // another thread was faster
      c10::raw::intrusive_ptr::decref(made);
      view = static_cast<KernelView*>(expected);
    }
  }
  // The block may have had an owner of another size before.
  if (view->storage->nbytes() != impl.nbytes()) view->storage->set_nbytes(impl.nbytes());
  return view;
}

c10::Storage kernel_storage(const c10::Storage& device_storage) {
  const KernelView* view = kernel_view(device_storage);
  return view == nullptr ? make_kernel_storage(*device_storage.unsafeGetStorageImpl())
                         : view->storage;
}

bool take_device_memory(c10::StorageImpl& kernel_storage, c10::StorageImpl& device_storage) {
  const size_t bytes = kernel_storage.nbytes();
  Block* block = release_kernel_block(kernel_storage);
  if (block == nullptr) return false;
  // The kernel storage is attached to the block that is freed here, for whoever gets that block
  // next.
  kernel_storage.set_data_ptr_noswap(c10::DataPtr(
      kernel_address(device_storage.mutable_data_ptr().mutable_get()), c10::DeviceType::CPU));
  device_storage.set_data_ptr_noswap(own_block(block));
  device_storage.set_nbytes(bytes);
  return true;
}

bool become_device_storage(c10::StorageImpl& storage, c10::DeviceIndex device) {
  if (storage.device_type() == c10::DeviceType::PrivateUse1) return true;
  if (Block* block = release_kernel_block(storage)) {
    storage.set_data_ptr_noswap(own_block(block));
  } else if (storage.data() == nullptr) {
    storage.set_data_ptr_noswap(c10::DataPtr(nullptr, device_at(device)));
  } else {
    return false;
  }
  storage.set_allocator(&device_allocator());
  return true;
}

}  // namespace openreg
