// OPENREG_LAUNCH=async: a kernel whose results' shapes are known beforehand is queued, and the
// caller goes on, as on a real accelerator. A program that forgets to synchronize then reads what
// is not there yet.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Stream.h>

#include <functional>

namespace openreg {

// Read once. False on a thread that is running a kernel itself.
bool launches_async();

// Queues the operator on the current stream and puts its results, which are not computed yet, on
// the stack. False, with the stack as it was, for an operator that must run now: its shapes depend
// on values, it returns a view or a number, or it would fail; then it fails with the CPU's error.
// Throws if it is given a generator of another device.
bool queue_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Leaves work to the stream's worker; errors are reported under the operator's name.
void queue_work(const c10::OperatorHandle& op, const c10::Stream& stream,
                std::function<void()> work);

// A tensor's shape as it is now, over the same bytes, for queued work: the caller may give the
// tensor another shape before it runs. Of a host tensor a copy, since the caller may change its
// bytes too.
at::Tensor snapshot(const at::Tensor& tensor);

}  // namespace openreg
