// Random number generators: one default per device, and torch.Generator(device=...).
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/util/FunctionRef.h>

#include <atomic>
#include <mutex>

#include "openreg.h"

namespace openreg {

// A Mersenne Twister with the layout and the numbers of PyTorch's CPU generator, so that the same
// seed gives the same values on the device as on the CPU. It is a generator of its own: drawing
// from it moves no other.
//
// Kernels draw in the order in which they were submitted, on whatever streams: a queued one waits
// for the one queued before, and who reads or sets the state, or draws at once, waits for all.
class GeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit GeneratorImpl(c10::DeviceIndex device);
  ~GeneratorImpl() override;

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

  // Calls submit(), which leaves a kernel that draws from this generator to the stream.
  void queue_draw(oregStream_t stream, c10::function_ref<void()> submit);

  // Waits until the kernels that were queued to draw from this generator have drawn. Not in a
  // kernel: those queued after it cannot run before it ends.
  void wait_for_queued_draws() const {
    if (C10_UNLIKELY(last_draw_.load(std::memory_order_acquire) != nullptr)) wait_for_last_draw();
  }

 private:
  GeneratorImpl* clone_impl() const override;
  void wait_for_last_draw() const;

  at::Generator engine_;
  std::mutex queue_mutex_;  // two threads that queue draws: one after the other
  std::atomic<oregEvent_t> last_draw_{nullptr};  // null as long as no draw was queued
};

// The device's default generator; -1 for the current device's.
const at::Generator& default_generator(c10::DeviceIndex device);

// `generator`, or the device's default generator when it is not given. Throws for a generator of
// another device, with the message of torch.cuda. A negative index stands for the host: a generator
// of the device brings an operator here even if all its tensors are the host's.
GeneratorImpl& chosen_generator(const std::optional<at::Generator>& generator,
                                c10::DeviceIndex device);

// The chosen generator's engine, for a kernel that runs now.
at::Generator engine_of(const std::optional<at::Generator>& generator, c10::DeviceIndex device);

}  // namespace openreg
