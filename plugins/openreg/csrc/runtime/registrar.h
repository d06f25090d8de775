// Registers kernels with PyTorch's dispatcher, as torch::Library::impl does, but without working
// out each kernel's schema from its C++ type to compare it with the operator's, which takes time at
// import for hundreds of kernels. It is for kernels whose types come from PyTorch's own
// declarations. That callers use the same C++ type is still checked.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string_view>

namespace openreg {

class Registrar {
 public:
  explicit Registrar(c10::DispatchKey key) : key_(key) {}

  // name: "aten::add.Tensor".
  template <class R, class... Args>
  void impl(const char* name, R (*kernel)(Args...)) {
    add(parsed(name), c10::KernelFunction::makeFromUnboxedRuntimeFunction(kernel),
        c10::impl::CppSignature::make<R(Args...)>());
  }

  // The same for TORCH_FN(kernel), which is called without a detour.
  template <class Function, Function* kernel>
  void impl(const char* name, c10::CompileTimeFunctionPointer<Function, kernel> function) {
    add(parsed(name), c10::KernelFunction::makeFromUnboxedFunction(function),
        c10::impl::CppSignature::make<Function>());
  }

  // A kernel for any signature.
  void impl(c10::OperatorName name, c10::KernelFunction kernel) {
    add(std::move(name), std::move(kernel), std::nullopt);
  }

 private:
  static c10::OperatorName parsed(std::string_view name) {
    const size_t dot = name.find('.');
    if (dot == std::string_view::npos) return {std::string(name), ""};
    return {std::string(name.substr(0, dot)), std::string(name.substr(dot + 1))};
  }

  void add(c10::OperatorName name, c10::KernelFunction kernel,
           std::optional<c10::impl::CppSignature> signature) {
    // Never deregistered: the module is not unloaded.
    new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerImpl(
        std::move(name), key_, std::move(kernel), std::move(signature),
        /*inferred_function_schema=*/nullptr, "devhost_openreg"));
  }

  c10::DispatchKey key_;
};

}  // namespace openreg
