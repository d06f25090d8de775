// devhost_openreg._C: importing it registers the device's runtime and kernels with PyTorch; its
// functions are what torch.openreg is made of.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

#include "kernels/composites.h"
#include "kernels/fallback_policy.h"
#include "kernels/kernel_memory.h"
#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/generator.h"
#include "runtime/hooks.h"

namespace py = pybind11;

namespace openreg {
namespace {

oregDeviceProp properties_of(c10::DeviceIndex index) {
  oregDeviceProp properties{};
  OREG_CHECK(oregGetDeviceProperties(&properties, index));
  return properties;
}

// Reserves the device's memory, so that what is wrong with it is said at the first use and not
// somewhere inside it.
void init() {
  size_t free = 0;
  size_t total = 0;
  OREG_CHECK(oregMemGetInfo(&free, &total));
}

py::object generator_of(c10::DeviceIndex index) {
  return py::reinterpret_steal<py::object>(THPGenerator_Wrap(default_generator(index)));
}

PYBIND11_MODULE(_C, module) {
  register_hooks();
  install_kernel_memory();
  prefer_cpu_kernels();

  py::class_<oregDeviceProp>(module, "DeviceProperties")
      .def_property_readonly("name", [](const oregDeviceProp& p) { return std::string(p.name); })
      .def_readonly("total_memory", &oregDeviceProp::totalMemory)
      .def_readonly("multi_processor_count", &oregDeviceProp::multiProcessorCount)
      .def_readonly("driver_version", &oregDeviceProp::driverVersion)
      .def("__repr__", [](const oregDeviceProp& p) {
        return "DeviceProperties(name='" + std::string(p.name) +
               "', total_memory=" + std::to_string(p.totalMemory) +
               ", multi_processor_count=" + std::to_string(p.multiProcessorCount) +
               ", driver_version=" + std::to_string(p.driverVersion) + ")";
      });

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
}

}  // namespace
}  // namespace openreg
