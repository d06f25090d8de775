// Turns the driver's error codes into the exceptions that PyTorch users know.
#pragma once

#include <c10/util/Exception.h>

#include "openreg.h"

namespace openreg {

// Throws torch.OutOfMemoryError for oregErrorMemoryAllocation and torch.AcceleratorError, which
// carries the code, for everything else. The message is the driver's own: the general sentence and
// the particulars.
[[noreturn]] void throw_driver_error(oregError_t error, c10::SourceLocation where);

}  // namespace openreg

#define OREG_CHECK(call)                                                                    \
  do {                                                                                      \
    const oregError_t oreg_error_ = (call);                                                 \
    if (C10_UNLIKELY(oreg_error_ != oregSuccess)) {                                         \
      ::openreg::throw_driver_error(oreg_error_,                                            \
                                    {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}); \
    }                                                                                       \
  } while (false)
