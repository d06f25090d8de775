// Every operator without a kernel of its own: the CPU kernel on aliases, through the boxed calling
// convention.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// What PyTorch calls. Counted, and subject to DEVHOST_FALLBACK.
void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// Runs the CPU kernel on aliases, now or, with OPENREG_LAUNCH=async, in the stream's order.
void run_boxed(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

bool is_generator(const c10::Argument& argument);

}  // namespace openreg
