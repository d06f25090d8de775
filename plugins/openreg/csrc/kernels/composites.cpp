#include "kernels/composites.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "kernels/fallback.h"
#include "runtime/registrar.h"

namespace openreg {
namespace {

using c10::DispatchKey;

// The device's key and the CPU's, for every layout that the fallback serves.
constexpr std::pair<DispatchKey, DispatchKey> kLayouts[] = {
    {DispatchKey::PrivateUse1, DispatchKey::CPU},
    {DispatchKey::SparsePrivateUse1, DispatchKey::SparseCPU},
    {DispatchKey::SparseCsrPrivateUse1, DispatchKey::SparseCsrCPU},
    {DispatchKey::QuantizedPrivateUse1, DispatchKey::QuantizedCPU},
    {DispatchKey::NestedTensorPrivateUse1, DispatchKey::NestedTensorCPU},
};

// Composite kernels that only know PyTorch's own devices: they ask for the type, or call a table of
// kernels that has no entry for this one.
constexpr std::pair<const char*, const char*> kOnlyForKnownDevices[] = {
    {"aten::conj_physical_", ""}, {"aten::mode", "values"}};

bool has_composite_kernel(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional) ||
         op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
}

}  // namespace

void prefer_cpu_kernels() {
  const auto fall_back = [](const c10::OperatorName& name, DispatchKey key) {
    Registrar(key).impl(name, c10::KernelFunction::makeFromBoxedFunction<&fallback>());
  };
  for (const auto& [name, overload] : kOnlyForKnownDevices) {
    fall_back({name, overload}, DispatchKey::PrivateUse1);
  }
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    if (!op.has_value() || !op->hasSchema()) continue;
    const bool composite = name.name.starts_with("aten::") && has_composite_kernel(*op);
    for (const auto& [device_key, cpu_key] : kLayouts) {
      // What is not composite in the strided layout goes to the fallback by itself.
      const bool asked_for = composite || device_key != DispatchKey::PrivateUse1;
      if (asked_for && op->hasKernelForDispatchKey(cpu_key)) fall_back(name, device_key);
    }
  }
}

}  // namespace openreg
