// Every operator without a kernel of its own: the CPU kernel on aliases, through the boxed calling
// convention.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace openreg
