#include "runtime/generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>
#include <vector>

#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/gil.h"

namespace openreg {
namespace {

std::mutex& mutex_of(const at::Generator& engine) {
  return engine.unsafeGetGeneratorImpl()->mutex_;
}

}  // namespace

GeneratorImpl::GeneratorImpl(c10::DeviceIndex device)
    : c10::GeneratorImpl(device_at(device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      engine_(at::detail::createCPUGenerator()) {}

GeneratorImpl::~GeneratorImpl() {
  if (const oregEvent_t event = last_draw_.load()) oregEventDestroy(event);
}

void GeneratorImpl::queue_draw(oregStream_t stream, c10::function_ref<void()> submit) {
  const std::lock_guard<std::mutex> lock(queue_mutex_);
  oregEvent_t event = last_draw_.load(std::memory_order_relaxed);
  if (event == nullptr) {
    const DeviceScope scope(device().index());
    OREG_CHECK(oregEventCreateWithFlags(&event, oregEventDefault));
    last_draw_.store(event, std::memory_order_release);
  }
  OREG_CHECK(oregStreamWaitEvent(stream, event));
  submit();
  OREG_CHECK(oregEventRecord(event, stream));
}

void GeneratorImpl::wait_for_last_draw() const {
  if (oregIsInKernel() != 0) return;
  const WithoutGil without_gil;
  OREG_CHECK(oregEventSynchronize(last_draw_.load(std::memory_order_relaxed)));
}

// Python and at::manual_seed hold this generator's mutex here, and kernels the engine's, which is
// therefore the one that counts.
void GeneratorImpl::set_current_seed(uint64_t seed) {
  wait_for_queued_draws();
  const std::lock_guard<std::mutex> lock(mutex_of(engine_));
  engine_.set_current_seed(seed);
}

uint64_t GeneratorImpl::current_seed() const {
  const std::lock_guard<std::mutex> lock(mutex_of(engine_));
  return engine_.current_seed();
}

uint64_t GeneratorImpl::seed() {
  wait_for_queued_draws();
  const std::lock_guard<std::mutex> lock(mutex_of(engine_));
  return engine_.seed();
}

// A Mersenne Twister has no offset: all of its position is in the state. Pickling asks every
// generator but the CPU's for one and gives it back, and must be answered.
void GeneratorImpl::set_offset(uint64_t offset) {
  TORCH_CHECK_NOT_IMPLEMENTED(offset == 0, "A generator of ", device(),
                              " has no offset to set: save and restore its state instead.");
}

uint64_t GeneratorImpl::get_offset() const { return 0; }

void GeneratorImpl::set_state(const c10::TensorImpl& state) {
  at::detail::check_rng_state(state);
  wait_for_queued_draws();
  const std::lock_guard<std::mutex> lock(mutex_of(engine_));
  auto* engine = engine_.unsafeGetGeneratorImpl();
  const int64_t expected = engine->get_state()->numel();
  TORCH_CHECK(state.numel() == expected, "Expected a random state of ", device(), " with ",
              expected, " bytes, but got ", state.numel(), " bytes.");
  engine->set_state(state);
}

c10::intrusive_ptr<c10::TensorImpl> GeneratorImpl::get_state() const {
  wait_for_queued_draws();
  const std::lock_guard<std::mutex> lock(mutex_of(engine_));
  return engine_.unsafeGetGeneratorImpl()->get_state();
}

GeneratorImpl* GeneratorImpl::clone_impl() const {
  wait_for_queued_draws();
  auto* clone = new GeneratorImpl(device().index());
  const std::lock_guard<std::mutex> lock(mutex_of(engine_));
  clone->engine_ = engine_.clone();
  return clone;
}

const at::Generator& default_generator(c10::DeviceIndex device) {
  static const auto* generators = [] {
    auto* made = new std::vector<at::Generator>();
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      made->push_back(at::make_generator<GeneratorImpl>(index));
    }
    return made;
  }();
  return generators->at(static_cast<size_t>(checked_index(device)));
}

GeneratorImpl& chosen_generator(const std::optional<at::Generator>& generator,
                                c10::DeviceIndex device) {
  const bool given = generator.has_value() && generator->defined();
  const at::Generator& chosen = given ? *generator : default_generator(device);
  if (given) {
    const c10::Device wanted = device < 0 ? c10::Device(c10::kCPU) : device_at(device);
    TORCH_CHECK(chosen.device().type() == wanted.type(), "Expected a '", wanted.type(),
                "' device type for generator but found '", chosen.device().type(), "'");
    TORCH_CHECK(chosen.device() == wanted, "Expected a generator of ", wanted, " but found one of ",
                chosen.device());
  }
  return *static_cast<GeneratorImpl*>(chosen.unsafeGetGeneratorImpl());
}

at::Generator engine_of(const std::optional<at::Generator>& generator, c10::DeviceIndex device) {
  const GeneratorImpl& chosen = chosen_generator(generator, device);
  chosen.wait_for_queued_draws();
  return chosen.engine();
}

}  // namespace openreg
