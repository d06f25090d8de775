// Operators that draw random numbers from a generator. They run the CPU's kernels with the engine
// of the device's generator, which gives the CPU's numbers for the same seed.
//
// Composite ones (rand_like, rrelu, torch.normal of numbers, ...) end in one of these. The
// factories are composite too, and run as one kernel here, because they are short. native_dropout,
// which takes no generator, is in dropout.cpp.
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_sample_dirichlet_ops.h>
#include <ATen/ops/_standard_gamma_ops.h>
#include <ATen/ops/bernoulli_ops.h>
#include <ATen/ops/binomial_ops.h>
#include <ATen/ops/cauchy_ops.h>
#include <ATen/ops/exponential_ops.h>
#include <ATen/ops/geometric_ops.h>
#include <ATen/ops/log_normal_ops.h>
#include <ATen/ops/multinomial_ops.h>
#include <ATen/ops/normal_ops.h>
#include <ATen/ops/poisson_ops.h>
#include <ATen/ops/rand_ops.h>
#include <ATen/ops/randint_ops.h>
#include <ATen/ops/randn_ops.h>
#include <ATen/ops/random_ops.h>
#include <ATen/ops/randperm_ops.h>
#include <ATen/ops/rrelu_with_noise_ops.h>
#include <ATen/ops/uniform_ops.h>

#include "kernels/factories.h"
#include "kernels/kernel.h"
#include "runtime/device.h"

namespace openreg {
namespace {

namespace op = at::_ops;

// Its generator comes before the tensor that says which device's it has to be.
at::Tensor& randperm_out(c10::SymInt n, std::optional<at::Generator> generator, at::Tensor& out) {
  if (C10_UNLIKELY(launches_async())) {
    return Kernel<op::randperm_generator_out>::call_boxed(std::move(n), std::move(generator), out);
  }
  AliasCall call;
  at::Tensor result = call.alias_mutable(out);
  const at::Generator engine = engine_of(generator, call.device());
  call.begin();
  op::randperm_generator_out::redispatch(kCpuKeys, std::move(n), engine, result);
  call.finish();
  return out;
}

// The CPU's kernel writes past the end of an output that is too small.
at::Tensor& rrelu_with_noise_out(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower,
                                 const at::Scalar& upper, bool training,
                                 std::optional<at::Generator> generator, at::Tensor& out) {
  at::native::resize_output(out, self.sizes());
  return Kernel<op::rrelu_with_noise_out>::call(self, noise, lower, upper, training,
                                                std::move(generator), out);
}

// rand, randn, randint, randperm: the CPU's factory as a whole, whose memory is the device's while
// it runs. `Op` is the overload that takes a generator; `Arguments` come before it.
template <class Op, class... Arguments>
struct Factory {
  static at::Tensor with_generator(Arguments... arguments, std::optional<at::Generator> generator,
                                   std::optional<at::ScalarType> dtype,
                                   std::optional<c10::Layout> layout,
                                   std::optional<c10::Device> device,
                                   std::optional<bool> pin_memory) {
    const c10::DeviceIndex index = checked_options(layout, device, pin_memory);
    if (C10_UNLIKELY(launches_async())) {
      return Kernel<Op>::call_boxed(arguments..., generator, dtype, layout, device_at(index),
                                    pin_memory);
    }
    AliasCall call;
    call.set_device(index);
    const at::Generator engine = engine_of(generator, call.device());
    call.begin();
    at::Tensor result =
        Op::redispatch(kCpuKeys, arguments..., engine, dtype, c10::kStrided, at::kCPU, false);
    call.finish();
    return call.wrap(std::move(result));
  }

  static at::Tensor call(Arguments... arguments, std::optional<at::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
    return with_generator(std::forward<Arguments>(arguments)..., std::nullopt, dtype, layout,
                          device, pin_memory);
  }
};

template <class Factory>
void implement_factory(torch::Library& library, const char* name, const char* with_generator) {
  library.impl(name, TORCH_FN(Factory::call));
  library.impl(with_generator, TORCH_FN(Factory::with_generator));
}

[[maybe_unused]] const bool registered = at_first_use([] {
  implement<op::_sample_dirichlet, op::_standard_gamma, op::bernoulli, op::bernoulli_out,
            op::bernoulli__Tensor, op::bernoulli__float, op::binomial, op::cauchy_,
            op::exponential_, op::geometric_, op::log_normal_, op::multinomial, op::multinomial_out,
            op::normal_, op::normal_Tensor_Tensor, op::normal_Tensor_Tensor_out,
            op::normal_Tensor_float, op::normal_Tensor_float_out, op::normal_float_Tensor,
            op::normal_float_Tensor_out, op::poisson, op::random_, op::random__from, op::random__to,
            op::rrelu_with_noise, op::rrelu_with_noise_, op::uniform_>();
});

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("rrelu_with_noise.out", TORCH_FN(rrelu_with_noise_out));
  library.impl("randperm.generator_out", TORCH_FN(randperm_out));

  using Size = c10::SymIntArrayRef;
  using c10::SymInt;
  implement_factory<Factory<op::rand_generator, Size>>(library, "rand", "rand.generator");
  implement_factory<Factory<op::randn_generator, Size>>(library, "randn", "randn.generator");
  implement_factory<Factory<op::randint_generator, SymInt, Size>>(library, "randint",
                                                                  "randint.generator");
  implement_factory<Factory<op::randint_low_generator, SymInt, SymInt, Size>>(
      library, "randint.low", "randint.low_generator");
  implement_factory<Factory<op::randperm_generator, SymInt>>(library, "randperm",
                                                             "randperm.generator");
}

}  // namespace
}  // namespace openreg
