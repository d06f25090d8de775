// PyTorch's generic view of devices, streams and events: torch.Stream, torch.Event,
// torch.accelerator and autograd's engine all come through here.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/stream.h"

namespace openreg {
namespace {

class GuardImpl final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }

  c10::Device exchangeDevice(c10::Device device) const override {
    return device_at(exchange_device(device.index()));
  }
  c10::Device getDevice() const override { return device_at(current_device()); }
  void setDevice(c10::Device device) const override { exchange_device(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && oregSetDevice(device.index()) != oregSuccess) oregGetLastError();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }

  c10::Stream getStream(c10::Device device) const override {
    return current_stream(device.index());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return default_stream(device.index());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return pooled_stream(device.index(), high_priority ? -1 : 0);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return pooled_stream(device.index(), priority);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return driver_stream(stream);
  }

  bool queryStream(const c10::Stream& stream) const override {
    return finished(oregStreamQuery(driver_stream(stream)));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    OREG_CHECK(oregStreamSynchronize(driver_stream(stream)));
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    synchronize_device(checked_index(device));
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex device,
              const c10::EventFlag flag) const override {
    TORCH_CHECK(device == -1 || device == stream.device_index(), "Event device index ", device,
                " does not match recording stream's device index ", stream.device_index(), ".");
    if (*event == nullptr) *event = create_event(stream.device_index(), flag);
    OREG_CHECK(oregEventRecord(static_cast<oregEvent_t>(*event), driver_stream(stream)));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;  // never recorded: nothing to wait for
    OREG_CHECK(oregStreamWaitEvent(driver_stream(stream), static_cast<oregEvent_t>(event)));
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || finished(oregEventQuery(static_cast<oregEvent_t>(event)));
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) OREG_CHECK(oregEventSynchronize(static_cast<oregEvent_t>(event)));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event != nullptr && oregEventDestroy(static_cast<oregEvent_t>(event)) != oregSuccess)
      oregGetLastError();
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start != nullptr && end != nullptr,
                "Both events must be recorded before calculating elapsed time.");
    float milliseconds = 0;
    OREG_CHECK(oregEventElapsedTime(&milliseconds, static_cast<oregEvent_t>(start),
                                    static_cast<oregEvent_t>(end)));
    return milliseconds;
  }

  void recordDataPtrOnStream(const c10::DataPtr& pointer,
                             const c10::Stream& stream) const override {
    device_allocator().recordStream(pointer, stream);
  }

  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    return {};
  }  // every dtype

 private:
  static bool finished(oregError_t error) {
    if (error == oregErrorNotReady) return false;
    OREG_CHECK(error);
    return true;
  }

  static oregEvent_t create_event(c10::DeviceIndex device, c10::EventFlag flag) {
    oregEvent_t event = nullptr;
    const DeviceScope scope(device);
    OREG_CHECK(oregEventCreateWithFlags(&event, flag == c10::EventFlag::BACKEND_DEFAULT
                                                    ? oregEventEnableTiming
                                                    : oregEventDefault));
    return event;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImpl);

}  // namespace
}  // namespace openreg
