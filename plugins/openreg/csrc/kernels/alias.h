// Runs PyTorch's CPU kernels on the device's bytes.
//
// A kernel sees device memory through a second mapping at a constant distance (see openreg.h). An
// *alias* is a CPU tensor over that mapping: same sizes, strides, dtype and bytes as the device
// tensor, no copy. One operator call is one AliasCall: it makes the aliases, takes the device's
// stream for as long as the kernel runs, and turns what the kernel returns into device tensors:
//
//   - an alias of an argument becomes the argument itself,
//   - a view of an alias becomes a view of the argument's storage,
//   - a new tensor is already in device memory, because PyTorch's CPU allocator hands out device
//   memory while the kernel
//     runs (kernel_memory.h); it only changes its name.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <forward_list>
#include <optional>

#include "openreg.h"

namespace openreg {

// The alias of a dense device tensor.
at::Tensor make_alias(const at::Tensor& tensor);

// Holds the calling thread's current stream of a device: what was submitted to it before has
// finished, and what comes later waits. A thread that runs a queued kernel holds its stream
// already. CPU tensors that are made on this thread meanwhile get the device's memory.
class KernelScope {
 public:
  // memory: the device that new CPU tensors live on; -1 for the host.
  KernelScope(c10::DeviceIndex device, c10::DeviceIndex memory);
  explicit KernelScope(c10::DeviceIndex device) : KernelScope(device, device) {}
  ~KernelScope();
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

 private:
  oregStream_t stream_;
  c10::DeviceIndex device_;
  c10::DeviceIndex outer_memory_;
};

class AliasCall {
 public:
  AliasCall() = default;
  ~AliasCall();
  AliasCall(const AliasCall&) = delete;
  AliasCall& operator=(const AliasCall&) = delete;

  // The alias of a device tensor; anything else (undefined, CPU) as it is. Every argument must
  // outlive the call.
  at::Tensor alias(const at::Tensor& tensor);
  // The same for an argument that the kernel writes to or resizes.
  at::Tensor alias_mutable(at::Tensor& tensor);
  // Index tensors, which may stay on the host beside device tensors, as PyTorch documents for
  // indexing.
  c10::List<std::optional<at::Tensor>> alias_indices(
      const c10::List<std::optional<at::Tensor>>& indices);

  // Lists give their elements as copies; the call holds on to them.
  at::Tensor& keep(at::Tensor tensor) { return kept_.emplace_front(std::move(tensor)); }

  // For an operator without tensor arguments: where its result goes.
  void set_device(c10::DeviceIndex device) { device_ = device; }
  c10::DeviceIndex device() const { return device_; }
  // For an operator that was asked for a result on the host.
  void set_host_results() { host_results_ = true; }

  // Checks the arguments' devices and waits for the stream. From here to finish() kernels may run.
  void begin();
  // Brings what the kernel did to the metadata of mutable arguments over to them.
  void finish();

  // The device tensor for a kernel's result. After finish().
  at::Tensor wrap(at::Tensor result);
  // The same for a part of a sparse result, which the host tensor around it is about to let go of.
  at::Tensor wrap_part(const at::Tensor& part);
  // Some kernels keep an argument beyond the call: they get a copy, since the device's bytes may
  // go. When no other reference to an alias is left.
  void detach_kept_aliases();
  // Whether the kernel returned (an alias of) an argument.
  bool is_alias(const at::Tensor& result) const;
  // The argument whose alias the kernel returned.
  at::Tensor& original_of(const at::Tensor& result);

 private:
  struct Argument {
    c10::TensorImpl* original;
    at::Tensor* reference;  // null unless mutable
    at::Tensor alias;
  };

  at::Tensor wrap_storage(at::Tensor result);
  const Argument* argument_with_storage(const c10::StorageImpl* storage) const;
  at::Tensor add(const at::Tensor& tensor, at::Tensor* reference);

  c10::SmallVector<Argument, 4> arguments_;
  std::forward_list<at::Tensor> kept_;  // empty, it allocates nothing
  c10::DeviceIndex device_ = -1;
  c10::DeviceIndex other_device_ = -1;  // a second device among the arguments: an error
  c10::TensorImpl* host_tensor_ =
      nullptr;  // a CPU tensor with dimensions: an error beside device tensors
  c10::TensorImpl* host_mutable_ = nullptr;  // a CPU tensor to be written: always an error
  bool host_results_ = false;
  std::optional<KernelScope> scope_;  // between begin() and finish()
};

}  // namespace openreg
