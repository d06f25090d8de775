#include "kernels/fallback.h"

#include <torch/library.h>

#include "kernels/alias.h"
#include "kernels/kernel.h"
#include "runtime/device.h"
#include "runtime/generator.h"

namespace openreg {
namespace {

c10::IValue alias_value(AliasCall& call, const c10::Argument& argument, c10::IValue& value) {
  const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  if (value.isTensor())
    return written ? call.alias_mutable(value.toTensor()) : call.alias(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> aliases;
    aliases.reserve(value.toTensorList().size());
    for (at::Tensor tensor : value.toTensorList()) {
      at::Tensor& kept = call.keep(std::move(tensor));
      aliases.push_back(written ? call.alias_mutable(kept) : call.alias(kept));
    }
    return aliases;
  }
  if (value.isOptionalTensorList()) return call.alias_indices(value.toOptionalTensorList());
  if (value.isDevice() && value.toDevice().is_privateuseone()) {
    call.set_device(checked_index(value.toDevice().index()));
    return c10::Device(c10::DeviceType::CPU);
  }
  return value;
}

bool is_generator(const c10::Argument& argument) {
  const auto& type = argument.type();
  if (const auto optional = type->cast<c10::OptionalType>()) {
    return optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
  }
  return type->kind() == c10::TypeKind::GeneratorType;
}

c10::IValue wrap_value(AliasCall& call, c10::IValue value) {
  if (value.isTensor()) return call.wrap(std::move(value).toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> results = std::move(value).toTensorList();
    for (size_t i = 0; i < results.size(); ++i) results.set(i, call.wrap(results.extract(i)));
    return results;
  }
  return value;
}

}  // namespace

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const size_t first = stack->size() - arguments.size();
  TORCH_CHECK_NOT_IMPLEMENTED(
      op.hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
          op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
          op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional),
      "The operator '", op.operator_name(), "' is not implemented for the ",
      c10::get_privateuse1_backend(), " device, and PyTorch has no CPU kernel for it to run.");
  // The arguments stay where they are until the call is over: aliases refer to them.
  std::vector<c10::IValue> originals(
      std::make_move_iterator(stack->begin() + static_cast<ptrdiff_t>(first)),
      std::make_move_iterator(stack->end()));
  AliasCall call;
  for (size_t i = 0; i < arguments.size(); ++i)
    (*stack)[first + i] = alias_value(call, arguments[i], originals[i]);
  call.begin();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (is_generator(arguments[i])) {
      (*stack)[first + i] = engine_of(originals[i].toOptional<at::Generator>(), call.device());
    }
  }
  op.redispatchBoxed(kCpuKeys, stack);
  call.finish();
  const size_t results = op.schema().returns().size();
  for (size_t i = stack->size() - results; i < stack->size(); ++i) {
    (*stack)[i] = wrap_value(call, std::move((*stack)[i]));
  }
}

}  // namespace openreg

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&openreg::fallback>());
}
