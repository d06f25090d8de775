#include "kernels/fallback.h"

#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include "kernels/alias.h"
#include "kernels/fallback_policy.h"
#include "kernels/kernel.h"
#include "kernels/launch.h"
#include "runtime/device.h"
#include "runtime/generator.h"

namespace openreg {
namespace {

at::Tensor alias_tensor(AliasCall& call, at::Tensor& tensor, bool written) {
  at::Tensor alias = written ? call.alias_mutable(tensor) : call.alias(tensor);
  // Some kernels return what only their derivative needs, and only if it will be asked for.
  if (tensor.requires_grad() && !alias.is_same(tensor)) alias.set_requires_grad(true);
  return alias;
}

void check_layout(const c10::OperatorHandle& op, const at::Tensor& result) {
  const bool known = !result.defined() || result.unsafeGetTensorImpl()->has_storage() ||
                     result.is_sparse() || at::sparse_csr::is_sparse_compressed(result);
  TORCH_CHECK_NOT_IMPLEMENTED(known, "The operator '", op.operator_name(),
                              "' gives a tensor of layout ", result.layout(), ", which the ",
                              c10::get_privateuse1_backend(), " device does not have.");
}

c10::IValue wrap_value(const c10::OperatorHandle& op, AliasCall& call, c10::IValue value) {
  if (value.isTensor()) {
    check_layout(op, value.toTensor());
    return call.wrap(std::move(value).toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> results = std::move(value).toTensorList();
    for (size_t i = 0; i < results.size(); ++i) results.set(i, call.wrap(results.extract(i)));
    return results;
  }
  return value;
}

void check_runs_on_cpu(const c10::OperatorHandle& op) {
  using c10::DispatchKey;
  for (const auto key :
       {DispatchKey::CPU, DispatchKey::CompositeExplicitAutograd,
        DispatchKey::CompositeExplicitAutogradNonFunctional, DispatchKey::SparseCPU,
        DispatchKey::SparseCsrCPU, DispatchKey::QuantizedCPU, DispatchKey::NestedTensorCPU}) {
    if (op.hasKernelForDispatchKey(key)) return;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, "The operator '", op.operator_name(),
                              "' is not implemented for the ", c10::get_privateuse1_backend(),
                              " device, and PyTorch has no CPU kernel for it to run.");
}

// The alias of an argument, whatever its type.
c10::IValue alias_value(AliasCall& call, const c10::Argument& argument, c10::IValue& value) {
  const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  if (value.isTensor()) return alias_tensor(call, value.toTensor(), written);
  if (value.isTensorList()) {
    c10::List<at::Tensor> aliases;
    aliases.reserve(value.toTensorList().size());
    for (at::Tensor tensor : value.toTensorList()) {
      aliases.push_back(alias_tensor(call, call.keep(std::move(tensor)), written));
    }
    return aliases;
  }
  if (value.isOptionalTensorList()) return call.alias_indices(value.toOptionalTensorList());
  if (value.isDevice()) {
    if (value.toDevice().is_cpu()) call.set_host_results();
    if (!value.toDevice().is_privateuseone()) return value;
    call.set_device(checked_index(value.toDevice().index()));
    return c10::Device(c10::DeviceType::CPU);
  }
  return value;
}

}  // namespace

bool is_generator(const c10::Argument& argument) {
  const auto& type = argument.type();
  if (const auto optional = type->cast<c10::OptionalType>()) {
    return optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
  }
  return type->kind() == c10::TypeKind::GeneratorType;
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  check_runs_on_cpu(op);
  note_fallback(op);
  run_boxed(op, keys, stack);
}

namespace {

// PyTorch leaves it to the kernel of an in-place foreach operator to tell autograd what it writes,
// and here the kernel runs below autograd.
void note_foreach_writes(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::string& name = op.operator_name().name;
  if (!name.starts_with("aten::_foreach_") || !name.ends_with('_')) return;
  const c10::IValue& written = stack[stack.size() - op.schema().arguments().size()];
  for (const at::Tensor& tensor : written.toTensorVector()) {
    tensor.unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace

void run_boxed(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const bool dense = keys.highestPriorityTypeId() == c10::DispatchKey::PrivateUse1;
  note_foreach_writes(op, *stack);
  if (C10_UNLIKELY(launches_async()) && dense && queue_kernel(op, stack)) return;

  const auto& arguments = op.schema().arguments();
  const size_t first = stack->size() - arguments.size();
  // The arguments stay where they are until the call is over: aliases refer to them.
  std::vector<c10::IValue> originals(
      std::make_move_iterator(stack->begin() + static_cast<ptrdiff_t>(first)),
      std::make_move_iterator(stack->end()));
  AliasCall call;
  for (size_t i = 0; i < arguments.size(); ++i)
    (*stack)[first + i] = alias_value(call, arguments[i], originals[i]);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (is_generator(arguments[i])) {
      (*stack)[first + i] = engine_of(originals[i].toOptional<at::Generator>(), call.device());
    }
  }
  call.begin();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (dense) {
    op.redispatchBoxed(kCpuKeys, stack);
  } else {  // another layout: PyTorch finds the kernel by the aliases' own
    op.callBoxed(stack);
  }
  call.finish();
  const size_t results = op.schema().returns().size();
  for (size_t i = stack->size() - results; i < stack->size(); ++i) {
    (*stack)[i] = wrap_value(op, call, std::move((*stack)[i]));
  }
  call.detach_kept_aliases();
}

namespace {

[[maybe_unused]] const bool registered = at_first_use([] {
  Registrar(c10::DispatchKey::PrivateUse1)
      .fallback(c10::KernelFunction::makeFromBoxedFunction<&fallback>());
});

// Factories that PyTorch does not compose of others: they may make the first tensor of the device.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  for (const char* name : {"_efficientzerotensor", "_empty_affine_quantized", "_make_dep_token",
                           "from_file", "tril_indices", "triu_indices"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
  }
}

}  // namespace
}  // namespace openreg
