#include "kernels/composites.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "kernels/fallback.h"

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
constexpr const char* kOnlyForKnownDevices[] = {"conj_physical_", "mode.values"};

bool has_composite_kernel(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional) ||
         op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd);
}

}  // namespace

void prefer_cpu_kernels() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", std::nullopt, __FILE__, __LINE__);
  for (const char* name : kOnlyForKnownDevices) {
    library->impl(name, torch::dispatch(DispatchKey::PrivateUse1,
                                        torch::CppFunction::makeFromBoxedFunction<&fallback>()));
  }
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto op = dispatcher.findOp(name);
    if (!op.has_value() || !op->hasSchema() || !has_composite_kernel(*op)) continue;
    for (const auto& [device_key, cpu_key] : kLayouts) {
      if (!op->hasKernelForDispatchKey(cpu_key) || op->hasKernelForDispatchKey(device_key))
        continue;
      const std::string full =
          name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
      library->impl(
          full.c_str(),
          torch::dispatch(device_key, torch::CppFunction::makeFromBoxedFunction<&fallback>()));
    }
  }
}

}  // namespace openreg
