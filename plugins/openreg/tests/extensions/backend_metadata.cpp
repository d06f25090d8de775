// A library that marks tensors of the device, in the metadata that PyTorch keeps for a backend, and
// tells PyTorch how the mark is saved and restored.
#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/serialization/pickler_helper.h>
#include <torch/library.h>

namespace {

using Flags = std::unordered_map<std::string, bool>;

struct Mark final : c10::BackendMeta {};

void mark(const at::Tensor& tensor) {
  tensor.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<Mark>());
}

bool is_marked(const at::Tensor& tensor) {
  return dynamic_cast<Mark*>(tensor.unsafeGetTensorImpl()->get_backend_meta()) != nullptr;
}

void save(const at::Tensor& tensor, Flags& flags) {
  if (is_marked(tensor)) flags["mark"] = true;
}

void restore(const at::Tensor& tensor, Flags& flags) {
  if (flags.contains("mark")) mark(tensor);
}

TORCH_LIBRARY(marks, library) {
  library.def("mark(Tensor self) -> ()", mark);
  library.def("is_marked(Tensor self) -> bool", is_marked);
  torch::jit::TensorBackendMetaRegistry(c10::DeviceType::PrivateUse1, save, restore);
}

}  // namespace
