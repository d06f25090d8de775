// devhost_openreg._C: importing it registers the device's runtime and kernels with PyTorch; its
// functions are what torch.openreg is made of.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

#include <mutex>

#include "bindings/device_properties.h"
#include "kernels/composites.h"
#include "kernels/fallback_policy.h"
#include "kernels/kernel_memory.h"
#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/generator.h"
#include "runtime/hooks.h"
#include "runtime/profiler.h"
#include "runtime/registrar.h"
#include "runtime/shutdown.h"
#include "runtime/stream.h"

namespace py = pybind11;

namespace openreg {
namespace {

oregDeviceProp properties_of(c10::DeviceIndex index) {
  oregDeviceProp properties{};
  OREG_CHECK(oregGetDeviceProperties(&properties, index));
  return properties;
}

// What only a process that uses the device needs: registering hundreds of operators takes
// milliseconds that `import torch` does not spend on it. No tensor of the device exists before, so
// no thread is inside an operator with the device's keys.
void register_for_first_use() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_kernels();
    prefer_cpu_kernels();
  });
}

// Called by torch.openreg before the first use of the device. Reserves the device's memory, so that
// what is wrong with it is said at the first use and not somewhere inside it.
void init() {
  register_for_first_use();
  size_t free = 0;
  size_t total = 0;
  OREG_CHECK(oregMemGetInfo(&free, &total));
  initialized.store(true, std::memory_order_release);
}

py::object generator_of(c10::DeviceIndex index) {
  return py::reinterpret_steal<py::object>(THPGenerator_Wrap(default_generator(index)));
}

bool can_access_peer(c10::DeviceIndex index, c10::DeviceIndex peer) {
  int can_access = 0;
  OREG_CHECK(oregDeviceCanAccessPeer(&can_access, index, peer));
  return can_access != 0;
}

void sleep(int64_t microseconds) {
  TORCH_CHECK_VALUE(microseconds >= 0, "The delay must not be negative, but is ", microseconds,
                    " microseconds.");
  ensure_initialized();
  OREG_CHECK(oregStreamDelay(current_driver_stream(current_device()),
                             static_cast<uint64_t>(microseconds)));
}

PYBIND11_MODULE(_C, module) {
  register_hooks();
  install_kernel_memory();
  register_profiler();

  define_device_properties(module);

  const auto def = [&](const char* name, auto function, auto... extra) {
    module.def(name, torch::wrap_pybind_function(function), extra...);
  };
  def("is_initialized", [] { return oregIsInitialized() != 0; });
  def("is_in_bad_fork", [] { return oregIsInBadFork() != 0; });
  def("device_count", [] { return device_count(); });
  def("current_device", current_device);
  def("set_device", set_device, py::arg("index"));
  def("exchange_device", exchange_device, py::arg("index"));
  def("get_device_properties", properties_of, py::arg("index"));
  def("default_generator", generator_of, py::arg("index"));
  def("set_fallback_policy", set_fallback_policy, py::arg("policy"));
  def("fallback_stats", fallback_stats);
  def("reset_fallback_stats", reset_fallback_stats);
  // These may wait, so that other Python threads go on meanwhile.
  module.def("init", torch::wrap_pybind_function_no_gil(init));
  module.def("synchronize", torch::wrap_pybind_function_no_gil([](c10::DeviceIndex index) {
               synchronize_device(checked_index(index));
             }),
             py::arg("index"));
  def("can_access_peer", can_access_peer, py::arg("index"), py::arg("peer"));
  def("set_memory_fraction", set_memory_fraction, py::arg("fraction"), py::arg("index"));

  py::dict members;  // what only this device has
  members["_sleep"] = py::cpp_function(
      torch::wrap_pybind_function(sleep), py::arg("microseconds"), py::name("_sleep"),
      "Keep the current stream busy for this long. Other work of the stream waits, the caller does "
      "not.");
  module.attr("module_members") = members;

  py::module_::import("atexit").attr("register")(
      py::cpp_function(&finish_work_before_exit, py::call_guard<py::gil_scoped_release>()));
}

}  // namespace
}  // namespace openreg
