// What PyTorch asks of an accelerator outside of any operator.
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/generator.h"
#include "runtime/host_allocator.h"

namespace openreg {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  void init() const override { ensure_initialized(); }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return oregIsInitialized() != 0; }

  c10::DeviceIndex deviceCount() const override { return device_count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_device(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return exchange_device(device);
  }
  // There is no context to create, so that an exchange needs no "maybe".
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return exchange_device(device);
  }

  c10::Device getDeviceFromPtr(void* data) const override {
    oregPointerAttributes attributes{};
    OREG_CHECK(oregPointerGetAttributes(&attributes, data));
    TORCH_CHECK(attributes.type == oregMemoryTypeDevice, "The pointer ", data, " is no memory of ",
                c10::get_privateuse1_backend(), ".");
    return device_at(static_cast<c10::DeviceIndex>(attributes.device));
  }

  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
    return default_generator(device);
  }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    return at::make_generator<GeneratorImpl>(checked_index(device));
  }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(*storage.unsafeGetStorageImpl(), bytes);
  }
};

}  // namespace

void register_hooks() {
  static auto* hooks = new Hooks();
  at::RegisterPrivateUse1HooksInterface(hooks);
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &device_allocator());
  register_pinned_allocator();
}

}  // namespace openreg
