// Copies in every direction, between devices, dtypes and strides.
#include "kernels/copy.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/copy_ops.h>
#include <ATen/ops/resize.h>
#include <torch/library.h>

#include "kernels/alias.h"
#include "kernels/kernel.h"
#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/host_allocator.h"
#include "runtime/stream.h"

namespace openreg {
namespace {

bool on_device(const at::Tensor& tensor) { return tensor.is_privateuseone(); }

// The same bytes in the same order on both sides, with nothing to convert.
bool same_bytes(const at::Tensor& dst, const at::Tensor& src) {
  return dst.scalar_type() == src.scalar_type() && dst.sizes() == src.sizes() &&
         dst.strides() == src.strides() && dst.is_non_overlapping_and_dense() &&
         dst.is_conj() == src.is_conj() && dst.is_neg() == src.is_neg() && !dst._is_zerotensor() &&
         !src._is_zerotensor();  // those have no bytes
}

// What the stream is given from now on comes after what the other has been given so far.
void wait_for(oregStream_t stream, c10::DeviceIndex other_device, oregStream_t other) {
  if (oregStreamQuery(other) == oregSuccess) return;
  const DeviceScope scope(other_device);
  oregEvent_t event = nullptr;
  OREG_CHECK(oregEventCreateWithFlags(&event, oregEventDefault));
  OREG_CHECK(oregEventRecord(event, other));
  OREG_CHECK(oregStreamWaitEvent(stream, event));
  OREG_CHECK(oregEventDestroy(event));  // who waits for it already is not affected
}

void copy_on_device(const at::Tensor& dst, const at::Tensor& src) {
  OREG_CHECK(oregMemcpyAsync(dst.mutable_data_ptr(), src.const_data_ptr(), dst.nbytes(),
                             oregMemcpyDeviceToDevice,
                             current_driver_stream(dst.device().index())));
}

// A copy that is left queued needs memory on the host that stays as it is until then: pinned
// memory, which its allocator keeps until the stream has passed. The driver waits for any other.
void copy_with_host(const at::Tensor& dst, const at::Tensor& src, bool non_blocking) {
  const bool to_host = on_device(src);
  const at::Tensor& host = to_host ? dst : src;
  const c10::Stream stream = current_stream((to_host ? src : dst).device().index());
  const oregStream_t handle = driver_stream(stream);
  OREG_CHECK(oregMemcpyAsync(dst.mutable_data_ptr(), src.const_data_ptr(), dst.nbytes(),
                             to_host ? oregMemcpyDeviceToHost : oregMemcpyHostToDevice, handle));
  if (non_blocking &&
      (oregStreamQuery(handle) == oregSuccess || record_pinned_on_stream(host.storage(), stream))) {
    return;
  }
  OREG_CHECK(oregStreamSynchronize(handle));
}

// The host's side of the copy is an ordinary CPU tensor, the device's an alias.
void copy_elements_now(const at::Tensor& dst, const at::Tensor& src, c10::DeviceIndex device) {
  at::Tensor to = on_device(dst) ? make_alias(dst) : dst;
  const at::Tensor from = on_device(src) ? make_alias(src) : src;
  const KernelScope scope(device);
  at::_ops::copy_::redispatch(kCpuKeys, to, from, /*non_blocking=*/false);
}

// The host's tensor may change as soon as the copy has returned. What the shapes show to be an
// error is one now.
bool can_be_queued(const at::Tensor& dst, const at::Tensor& src) {
  return on_device(dst) && on_device(src) && at::is_expandable_to(src.sizes(), dst.sizes()) &&
         at::has_internal_overlap(dst) != at::MemOverlap::Yes;
}

void copy_elements(const at::Tensor& dst, const at::Tensor& src, c10::DeviceIndex device) {
  if (C10_LIKELY(!launches_async()) || !can_be_queued(dst, src)) {
    return copy_elements_now(dst, src, device);
  }
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
  queue_work(op, current_stream(device), [to = snapshot(dst), from = snapshot(src), device] {
    copy_elements_now(to, from, device);
  });
}

}  // namespace

// Replaces the operator itself rather than _copy_from underneath it: PyTorch's copy_ would set up
// an iterator first.
at::Tensor& copy_(at::Tensor& self, const at::Tensor& src, bool non_blocking) {
  TORCH_CHECK(self.defined(), "self is undefined");
  TORCH_CHECK(src.defined(), "src is undefined");
  if (self.is_same(src)) return self;
  TORCH_CHECK_NOT_IMPLEMENTED(
      (self.is_cpu() || on_device(self)) && (src.is_cpu() || on_device(src)), "Cannot copy from ",
      src.device(), " to ", self.device(), ". Copy through the CPU.");
  TORCH_CHECK_NOT_IMPLEMENTED(self.layout() == c10::kStrided && src.layout() == c10::kStrided,
                              "Cannot copy between layouts ", src.layout(), " and ", self.layout(),
                              " on ", c10::get_privateuse1_backend(), ".");
  if (self.numel() == 0 && same_bytes(self, src)) return self;
  const bool within_devices = on_device(self) && on_device(src);
  const c10::DeviceIndex device = (on_device(self) ? self : src).device().index();
  const c10::DeviceIndex other = (on_device(src) ? src : self).device().index();
  // Between devices the copy runs on the target's stream, after what the source's stream has been
  // given so far and before what it is given later, which may reuse the source's memory.
  if (other != device) wait_for(current_driver_stream(device), other, current_driver_stream(other));
  if (!same_bytes(self, src)) {
    copy_elements(self, src, device);
  } else if (within_devices) {
    copy_on_device(self, src);
  } else {
    copy_with_host(self, src, non_blocking);
  }
  if (other != device)
    wait_for(current_driver_stream(other), device, current_driver_stream(device));
  return self;
}

namespace {

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  at::Tensor target = dst;
  return copy_(target, self, non_blocking);
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  at::Tensor target = dst;
  at::_ops::resize_::call(target, self.sym_sizes(), std::nullopt);
  return copy_(target, self, /*non_blocking=*/false);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("copy_", TORCH_FN(copy_));
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
}

}  // namespace
}  // namespace openreg
