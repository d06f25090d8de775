#include "runtime/generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include <vector>

#include "runtime/device.h"

namespace openreg {

GeneratorImpl::GeneratorImpl(c10::DeviceIndex device)
    : c10::GeneratorImpl(device_at(device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      engine_(at::detail::createCPUGenerator()) {}

void GeneratorImpl::set_current_seed(uint64_t seed) { engine_.set_current_seed(seed); }
uint64_t GeneratorImpl::current_seed() const { return engine_.current_seed(); }
uint64_t GeneratorImpl::seed() { return engine_.seed(); }
void GeneratorImpl::set_offset(uint64_t offset) { engine_.set_offset(offset); }
uint64_t GeneratorImpl::get_offset() const { return engine_.get_offset(); }

void GeneratorImpl::set_state(const c10::TensorImpl& state) {
  engine_.unsafeGetGeneratorImpl()->set_state(state);
}

c10::intrusive_ptr<c10::TensorImpl> GeneratorImpl::get_state() const {
  return engine_.unsafeGetGeneratorImpl()->get_state();
}

GeneratorImpl* GeneratorImpl::clone_impl() const {
  auto* clone = new GeneratorImpl(device().index());
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

at::Generator engine_of(const std::optional<at::Generator>& generator, c10::DeviceIndex device) {
  const at::Generator& chosen =
      generator.has_value() && generator->defined() ? *generator : default_generator(device);
  TORCH_CHECK(chosen.device().type() == c10::DeviceType::PrivateUse1, "Expected a '",
              c10::DeviceType::PrivateUse1, "' device type for generator but found '",
              chosen.device().type(), "'");
  TORCH_CHECK(chosen.device().index() == device, "Expected a generator of ", device_at(device),
              " but found one of ", chosen.device());
  return static_cast<GeneratorImpl*>(chosen.unsafeGetGeneratorImpl())->engine();
}

}  // namespace openreg
