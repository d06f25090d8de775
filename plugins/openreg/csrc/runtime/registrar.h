// Registers kernels with PyTorch's dispatcher, as torch::Library::impl does, but without working
// out each kernel's schema from its C++ type to compare it with the operator's, which takes time at
// import for hundreds of kernels. It is for kernels whose types come from PyTorch's own
// declarations. That callers use the same C++ type is still checked.
//
// What an operator, or all of them, has for the key already stays: kernels are registered as late
// as at the first use of the device, when a program may have put its own in their place.
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

  // A kernel for all operators that have none. PyTorch goes over every operator for that.
  void fallback(c10::KernelFunction kernel) {
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    if (dispatcher.hasBackendFallbackForDispatchKey(key_)) return;
    keep(dispatcher.registerFallback(key_, std::move(kernel), kOwner));
  }

 private:
  static constexpr const char* kOwner = "devhost_openreg";

  static c10::OperatorName parsed(std::string_view name) {
    const size_t dot = name.find('.');
    if (dot == std::string_view::npos) return {std::string(name), ""};
    return {std::string(name.substr(0, dot)), std::string(name.substr(dot + 1))};
  }

  void add(c10::OperatorName name, c10::KernelFunction kernel,
           std::optional<c10::impl::CppSignature> signature) {
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    const auto op = dispatcher.findOp(name);
    if (op.has_value() && op->hasKernelForDispatchKey(key_)) return;
    keep(dispatcher.registerImpl(std::move(name), key_, std::move(kernel), std::move(signature),
                                 /*inferred_function_schema=*/nullptr, kOwner));
  }

  // Never deregistered: the module is not unloaded.
  static void keep(c10::RegistrationHandleRAII handle) {
    new c10::RegistrationHandleRAII(std::move(handle));
  }

  c10::DispatchKey key_;
};

// Has kernels registered at the first use of the device. Called while this library is loaded, by a
// file that initialises a variable with the result. In which order the files come is open.
//
// It is for operators that take a tensor of the device, which cannot be called before there is one.
bool at_first_use(void (*registration)());

// Does what at_first_use() was given. Once per process.
void register_kernels();

}  // namespace openreg
