#include "kernels/launch.h"

#include <ATen/ops/clone.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/resize.h>
#include <torch/library.h>

#include "kernels/alias.h"
#include "kernels/fallback.h"
#include "kernels/kernel.h"
#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/generator.h"
#include "runtime/stream.h"

namespace openreg {
namespace {

using c10::IValue;
using torch::jit::Stack;

// Calls visit(tensor) for every tensor of the value; what it returns takes the tensor's place.
template <class Visit>
IValue map_tensors(const IValue& value, Visit visit) {
  if (value.isTensor()) return visit(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> mapped;
    for (const at::Tensor& tensor : value.toTensorVector()) mapped.push_back(visit(tensor));
    return mapped;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> mapped;
    for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
      mapped.push_back(tensor.has_value() ? std::optional<at::Tensor>(visit(*tensor))
                                          : std::nullopt);
    }
    return mapped;
  }
  return value;
}

bool returns_new_or_written_tensors(const c10::FunctionSchema& schema) {
  return std::all_of(
      schema.returns().begin(), schema.returns().end(), [](const c10::Argument& result) {
        const auto& type = *result.type();
        const bool tensors = type.isSubtypeOf(*c10::TensorType::get()) ||
                             type.isSubtypeOf(*c10::ListType::ofTensors());
        return tensors && (result.alias_info() == nullptr || result.alias_info()->isWrite());
      });
}

// Their CPU kernels return other shapes than their Meta kernels say, or no bytes at all.
constexpr std::string_view kUnlikeTheirShapes[] = {
    "aten::_embedding_bag", "aten::native_batch_norm", "aten::_native_batch_norm_legit",
    "aten::_efficientzerotensor", "aten::mkldnn_rnn_layer"};

bool has_true_shapes(const c10::OperatorHandle& op) {
  return std::none_of(
      std::begin(kUnlikeTheirShapes), std::end(kUnlikeTheirShapes),
      [&](std::string_view name) { return op.operator_name().name.starts_with(name); });
}

bool can_be_queued(const c10::OperatorHandle& op) {
  return returns_new_or_written_tensors(op.schema()) && !op.hasTag(at::Tag::dynamic_output_shape) &&
         !op.hasTag(at::Tag::data_dependent_output) &&
         (op.schema().returns().empty() ||
          op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta)) &&
         has_true_shapes(op);
}

// The arguments without the tensors' bytes, for the Meta kernel.
class Shapes {
 public:
  IValue of(const IValue& value) {
    if (value.isGenerator()) return {};  // nothing is drawn
    if (value.isDevice() && value.toDevice().is_privateuseone()) {
      device_ = checked_index(value.toDevice().index());
      return c10::Device(c10::DeviceType::Meta);
    }
    return map_tensors(value, [this](const at::Tensor& tensor) { return of(tensor); });
  }

  // The argument that a result of the Meta kernel is, brought to the result's shape, or a new
  // tensor.
  at::Tensor to_device(const at::Tensor& result) const {
    if (!result.defined()) return result;
    for (const auto& [argument, shape] : tensors_) {
      if (!shape.is_same(result)) continue;
      if (argument.sizes() != result.sizes()) argument.resize_(result.sizes());
      return argument;
    }
    return at::empty_strided(result.sizes(), result.strides(),
                             result.options().device(device_at(device_)));
  }

  c10::DeviceIndex device() const { return device_; }
  bool all_on_one_device() const { return device_ >= 0 && !mixed_; }

 private:
  at::Tensor of(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    if (tensor.is_privateuseone()) {
      const c10::DeviceIndex device = tensor.device().index();
      mixed_ |= device_ >= 0 && device_ != device;
      device_ = device;
    } else {
      mixed_ |= tensor.dim() > 0;
      return tensor;  // a number: PyTorch takes it beside tensors of any device
    }
    at::Tensor shape =
        at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(c10::kMeta));
    tensors_.emplace_back(tensor, shape);
    return shape;
  }

  std::vector<std::pair<at::Tensor, at::Tensor>> tensors_;
  c10::DeviceIndex device_ = -1;
  bool mixed_ = false;
};

// Brings what the kernel has returned to the tensor that the caller was given.
void copy_result(const at::Tensor& given, const at::Tensor& computed) {
  if (!given.defined() || given.is_alias_of(computed)) return;  // it has written there itself
  at::Tensor target = make_alias(given);
  at::_ops::copy_::redispatch(kCpuKeys, target, make_alias(computed), /*non_blocking=*/false);
}

void copy_result(const IValue& given, const IValue& computed) {
  if (given.isTensor()) return copy_result(given.toTensor(), computed.toTensor());
  const auto given_list = given.toTensorVector();
  const auto computed_list = computed.toTensorVector();
  for (size_t i = 0; i < given_list.size(); ++i) copy_result(given_list[i], computed_list[i]);
}

// The generator that the operator draws from; null if it draws from none.
GeneratorImpl* generator_of(const c10::FunctionSchema& schema, const IValue* arguments,
                            c10::DeviceIndex device) {
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    if (is_generator(schema.arguments()[i])) {
      return &chosen_generator(arguments[i].toOptional<at::Generator>(), device);
    }
  }
  return nullptr;
}

struct QueuedKernel {
  c10::OperatorHandle op;
  c10::Stream stream;
  std::function<void()> work;
};

oregError_t run(void* argument) {
  auto* const queued = static_cast<QueuedKernel*>(argument);
  const QueuedKernelScope on_worker(queued->stream);
  // Inside the scope, so that what the work has allocated goes back to the worker's pool.
  const std::unique_ptr<QueuedKernel> kernel(queued);
  try {
    kernel->work();
  } catch (const c10::Error& error) {
    throw std::runtime_error(c10::toString(kernel->op.operator_name()) + ": " +
                             error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw std::runtime_error(c10::toString(kernel->op.operator_name()) + ": " + error.what());
  }
  return oregSuccess;
}

}  // namespace

bool launches_async() {
  static const bool async = [] {
    oregLaunchMode mode = oregLaunchInline;
    OREG_CHECK(oregGetLaunchMode(&mode));
    return mode == oregLaunchAsync;
  }();
  return async && oregIsInKernel() == 0;
}

at::Tensor snapshot(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (!tensor.is_privateuseone()) return tensor.clone();
  return at::Tensor(
      tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
}

void queue_work(const c10::OperatorHandle& op, const c10::Stream& stream,
                std::function<void()> work) {
  auto kernel = std::make_unique<QueuedKernel>(QueuedKernel{op, stream, std::move(work)});
  OREG_CHECK(oregLaunch(&run, kernel.get(), driver_stream(stream)));
  kernel.release();
}

bool queue_kernel(const c10::OperatorHandle& op, Stack* stack) {
  if (!can_be_queued(op)) return false;
  const auto first = stack->end() - static_cast<ptrdiff_t>(op.schema().arguments().size());

  Shapes shapes;
  Stack shape_stack;
  for (auto value = first; value != stack->end(); ++value) shape_stack.push_back(shapes.of(*value));
  if (!shapes.all_on_one_device()) return false;
  try {
    // An operator without results has no shapes to find out.
    if (op.schema().returns().empty()) {
      shape_stack.clear();
    } else {
      op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &shape_stack);
    }
  } catch (const std::exception&) {
    return false;  // shapes that depend on values, or an error, which the CPU's kernel words better
  }
  GeneratorImpl* const generator = generator_of(op.schema(), &*first, shapes.device());

  Stack arguments;
  for (auto value = first; value != stack->end(); ++value) {
    arguments.push_back(map_tensors(*value, snapshot));
  }
  stack->erase(first, stack->end());
  std::vector<IValue> results;  // what the caller is given
  for (const IValue& result : shape_stack) {
    stack->push_back(
        map_tensors(result, [&](const at::Tensor& tensor) { return shapes.to_device(tensor); }));
    results.push_back(map_tensors(stack->back(), snapshot));
  }

  const c10::Stream stream = current_stream(shapes.device());
  const auto submit = [&] {
    // The queue holds the arguments until the kernel has run.
    queue_work(op, stream,
               [op, stack = std::move(arguments), results = std::move(results)]() mutable {
                 run_boxed(op, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), &stack);
                 for (size_t i = 0; i < results.size(); ++i) copy_result(results[i], stack[i]);
               });
  };
  if (generator == nullptr) {
    submit();
  } else {
    generator->queue_draw(driver_stream(stream), submit);
  }
  return true;
}

}  // namespace openreg
