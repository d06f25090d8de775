// The driver's description of a device as a Python class, for both extension modules.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "openreg.h"

namespace openreg {

// The class is the module's own, so that importing both modules does not register it twice.
inline void define_device_properties(pybind11::module_& module) {
  pybind11::class_<oregDeviceProp>(module, "DeviceProperties", "What one device is. Immutable.",
                                   pybind11::module_local())
      .def_property_readonly(
          "name", [](const oregDeviceProp& self) { return std::string(self.name); }, "str")
      .def_readonly("total_memory", &oregDeviceProp::totalMemory, "int: bytes")
      .def_readonly("multi_processor_count", &oregDeviceProp::multiProcessorCount,
                    "int: compute units, the processors that kernels run on")
      .def_readonly("driver_version", &oregDeviceProp::driverVersion, "int: major * 1000 + minor")
      .def_readonly("ordinal", &oregDeviceProp::ordinal,
                    "int: the device's number without OPENREG_VISIBLE_DEVICES")
      .def("__repr__", [](const oregDeviceProp& self) {
        return "DeviceProperties(name='" + std::string(self.name) +
               "', total_memory=" + std::to_string(self.totalMemory) +
               ", multi_processor_count=" + std::to_string(self.multiProcessorCount) +
               ", driver_version=" + std::to_string(self.driverVersion) +
               ", ordinal=" + std::to_string(self.ordinal) + ")";
      });
}

}  // namespace openreg
