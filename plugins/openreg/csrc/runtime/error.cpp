#include "runtime/error.h"

#include <c10/core/DeviceType.h>

namespace openreg {

void throw_driver_error(oregError_t error, c10::SourceLocation where) {
  const std::string particulars = oregGetLastErrorMessage();
  oregGetLastError();  // reported here, so that no later call reports it again
  std::string message = c10::get_privateuse1_backend() + " error: " + oregGetErrorString(error);
  if (!particulars.empty()) message += " (" + particulars + ")";
  if (error == oregErrorMemoryAllocation) throw c10::OutOfMemoryError(where, std::move(message));
  throw c10::AcceleratorError(where, error, std::move(message));
}

}  // namespace openreg
