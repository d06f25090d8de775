// OPENREG_LAUNCH=async: a kernel whose results' shapes are known beforehand is queued, and the
// caller goes on, as on a real accelerator. A program that forgets to synchronize then reads what
// is not there yet.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// Read once. False on a thread that is running a kernel itself.
bool launches_async();

// Queues the operator on the current stream and puts its results, which are not computed yet, on
// the stack. False, with the stack as it was, for an operator that must run now: its shapes depend
// on values, it returns a view or a number, draws random numbers, or it would fail; then it fails
// with the CPU's error.
bool queue_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace openreg
