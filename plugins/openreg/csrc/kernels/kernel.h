// Kernels without boxing: Kernel<at::_ops::add_Tensor>::call has the operator's own signature and
// runs the CPU kernel on aliases. What happens to an argument or a result follows from its type, so
// that one line registers an operator.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include <tuple>
#include <vector>

#include "kernels/alias.h"
#include "kernels/fallback.h"
#include "kernels/launch.h"
#include "runtime/generator.h"
#include "runtime/registrar.h"

namespace openreg {

inline constexpr c10::DispatchKeySet kCpuKeys{c10::DispatchKey::CPU};

// ---- Arguments ----

template <class T>
struct ToKernel {  // scalars, sizes, flags
  static std::remove_reference_t<T>& convert(AliasCall&, std::remove_reference_t<T>& argument) {
    return argument;
  }
};
template <>
struct ToKernel<const at::Tensor&> {
  static at::Tensor convert(AliasCall& call, const at::Tensor& tensor) {
    return call.alias(tensor);
  }
};
template <>
struct ToKernel<at::Tensor&> {
  static at::Tensor convert(AliasCall& call, at::Tensor& tensor) {
    return call.alias_mutable(tensor);
  }
};
template <>
struct ToKernel<const std::optional<at::Tensor>&> {
  static std::optional<at::Tensor> convert(AliasCall& call,
                                           const std::optional<at::Tensor>& tensor) {
    return tensor.has_value() ? std::optional<at::Tensor>(call.alias(*tensor)) : std::nullopt;
  }
};
template <>
struct ToKernel<std::optional<at::Generator>> {
  static std::optional<at::Generator> convert(AliasCall& call,
                                              const std::optional<at::Generator>& generator) {
    return engine_of(generator,
                     call.device());  // a generator comes after the tensors in every schema
  }
};
template <class List>
struct ListToKernel {
  static std::vector<at::Tensor> convert(AliasCall& call, const List& tensors) {
    std::vector<at::Tensor> aliases;
    aliases.reserve(tensors.size());
    for (const at::Tensor& tensor : tensors) aliases.push_back(call.alias(tensor));
    return aliases;
  }
};
template <>
struct ToKernel<at::TensorList> : ListToKernel<at::TensorList> {};
template <>
struct ToKernel<const at::ITensorListRef&> : ListToKernel<at::ITensorListRef> {};
template <>
struct ToKernel<const c10::List<std::optional<at::Tensor>>&> {
  static c10::List<std::optional<at::Tensor>> convert(
      AliasCall& call, const c10::List<std::optional<at::Tensor>>& indices) {
    return call.alias_indices(indices);
  }
};

// ---- Results ----

template <class R>
struct FromKernel {  // numbers
  static R convert(AliasCall&, R result) { return result; }
};
template <>
struct FromKernel<at::Tensor> {
  static at::Tensor convert(AliasCall& call, at::Tensor result) {
    return call.wrap(std::move(result));
  }
};
template <>
struct FromKernel<at::Tensor&> {
  static at::Tensor& convert(AliasCall& call, at::Tensor& result) {
    return call.original_of(result);
  }
};
template <>
struct FromKernel<std::vector<at::Tensor>> {
  static std::vector<at::Tensor> convert(AliasCall& call, std::vector<at::Tensor> results) {
    for (at::Tensor& result : results) result = call.wrap(std::move(result));
    return results;
  }
};
template <class... Rs>
struct FromKernel<std::tuple<Rs...>> {
  static std::tuple<Rs...> convert(AliasCall& call, std::tuple<Rs...> results) {
    return std::apply(
        [&](auto&... r) {
          return std::tuple<Rs...>(FromKernel<Rs>::convert(call, static_cast<Rs&&>(r))...);
        },
        results);
  }
};

// ---- The kernel ----

// One kernel: runs a function of the operator's signature on aliases of the arguments. Inlined,
// because one call more is felt in a small operator.
template <class Signature>
struct OnAliases;

template <class R, class... Args>
struct OnAliases<R(Args...)> {
  template <class Function>
  C10_ALWAYS_INLINE static R run(const Function& function, Args&... args) {
    AliasCall call;
    // Braces: the arguments are taken in order.
    auto aliases = std::tuple<decltype(ToKernel<Args>::convert(call, args))...>{
        ToKernel<Args>::convert(call, args)...};
    call.begin();
    if constexpr (std::is_void_v<R>) {
      std::apply(function, aliases);
      call.finish();
    } else {
      R result = std::apply(function, aliases);
      call.finish();
      return FromKernel<R>::convert(call, static_cast<R&&>(result));
    }
  }
};

// The operator's CPU kernel.
template <class Op, class Schema = typename Op::schema>
struct Kernel;

template <class Op, class R, class... Args>
struct Kernel<Op, R(Args...)> {
  static R call(Args... args) {
    if (C10_UNLIKELY(launches_async())) return call_boxed(args...);
    return OnAliases<R(Args...)>::run(
        [](auto&... aliases) -> R { return Op::redispatch(kCpuKeys, aliases...); }, args...);
  }

  // The queue takes its kernels boxed.
  static R call_boxed(Args... args) {
    static const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name);
    static const auto boxed = c10::BoxedKernel::makeFromFunction<&run_boxed>();
    return c10::impl::BoxedKernelWrapper<R(Args...)>::call(
        boxed, op, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), std::forward<Args>(args)...);
  }
};

// A function that puts an operator together from others: Composed<&function>::call has the same
// signature. The function sees aliases and is one kernel; where kernels are queued it sees the
// tensors themselves, and each of the others is a kernel.
template <auto function, class Signature = std::remove_pointer_t<decltype(function)>>
struct Composed;

template <auto function, class R, class... Args>
struct Composed<function, R(Args...)> {
  static R call(Args... args) {
    if (C10_UNLIKELY(launches_async())) {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autocast_dispatch_keyset);
      return function(std::forward<Args>(args)...);
    }
    return OnAliases<R(Args...)>::run(function, args...);
  }
};

// Registers kernels for operators: implement<at::_ops::add_Tensor, ...>().
template <class... Ops>
void implement() {
  Registrar registrar(c10::DispatchKey::PrivateUse1);
  const auto name = [](const char* base, const char* overload) {
    return *overload == '\0' ? std::string(base) : std::string(base) + "." + overload;
  };
  (registrar.impl(name(Ops::name, Ops::overload_name).c_str(), TORCH_FN(Kernel<Ops>::call)), ...);
}

}  // namespace openreg
