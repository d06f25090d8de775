// The two operators of torch.amp.GradScaler.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale_ops.h>
#include <ATen/ops/_amp_update_scale_ops.h>

#include "kernels/kernel.h"

namespace openreg {
namespace {

namespace op = at::_ops;

[[maybe_unused]] const bool registered = at_first_use(
    [] { implement<op::_amp_foreach_non_finite_check_and_unscale_, op::_amp_update_scale_>(); });

}  // namespace
}  // namespace openreg
