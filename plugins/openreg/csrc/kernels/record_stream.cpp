// Tensor.record_stream: what keeps memory that was allocated for one stream from being reused while
// another still works on it.
#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>
#include <torch/library.h>

#include "runtime/allocator.h"
#include "runtime/stream.h"

namespace openreg {
namespace {

void record_stream(at::Tensor& self, c10::Stream stream) {
  record_on_stream(self.storage().data_ptr(), driver_stream(stream));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("record_stream", TORCH_FN(record_stream));
}

}  // namespace
}  // namespace openreg
