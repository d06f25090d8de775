// Random number generators: one default per device, and torch.Generator(device=...).
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

namespace openreg {

// A Mersenne Twister with the layout and the numbers of PyTorch's CPU generator, so that the same
// seed gives the same values on the device as on the CPU. It is a generator of its own: drawing
// from it moves no other.
class GeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit GeneratorImpl(c10::DeviceIndex device);

  static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  // What kernels draw from.
  const at::Generator& engine() const { return engine_; }

 private:
  GeneratorImpl* clone_impl() const override;

  at::Generator engine_;
};

// The device's default generator; -1 for the current device's.
const at::Generator& default_generator(c10::DeviceIndex device);

// The engine of `generator`, or of the device's default generator when it is not given. Throws for
// a generator of another device, with the message of torch.cuda. A negative index stands for the
// host: a generator of the device brings an operator here even if all its tensors are the host's.
at::Generator engine_of(const std::optional<at::Generator>& generator, c10::DeviceIndex device);

}  // namespace openreg
