// devhost_openreg._driver: the driver for Python, without torch.
#include <pybind11/gil_safe_call_once.h>
#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "bindings/device_properties.h"
#include "openreg.h"

namespace py = pybind11;

namespace {

// A failed call of the driver, on its way to Python.
struct DriverError {
  oregError_t code;
  std::string message;
};

void check(oregError_t code) {
  if (code == oregSuccess) return;
  oregGetLastError();  // reported here, so it must not be found again later
  throw DriverError{code, oregGetLastErrorMessage()};
}

int deviceCount() {
  int count = 0;
  check(oregGetDeviceCount(&count));
  return count;
}

int driverVersion() {
  int version = 0;
  check(oregDriverGetVersion(&version));
  return version;
}

oregDeviceProp getDeviceProperties(int index) {
  oregDeviceProp properties{};
  check(oregGetDeviceProperties(&properties, index));
  return properties;
}

std::pair<size_t, size_t> memGetInfo(int index) {
  int previous = 0;
  check(oregGetDevice(&previous));
  check(oregSetDevice(index));
  size_t free = 0;
  size_t total = 0;
  const oregError_t code = oregMemGetInfo(&free, &total);
  oregSetDevice(previous);  // was current before, so it exists
  check(code);
  return {free, total};
}

PYBIND11_CONSTINIT py::gil_safe_call_once_and_store<py::object> driverErrorType;

py::object createDriverErrorType() {
  const char* doc =
      "A call of the OpenReg driver failed.\n\n"
      "The text is the error's name and what was wrong; the attributes ``code`` (int) and\n"
      "``name`` (str) are the driver's oregError_t.";
  return py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(
      "devhost_openreg._driver.DriverError", doc, PyExc_RuntimeError, nullptr));
}

void raiseInPython(const DriverError& error) {
  const py::object& type = driverErrorType.get_stored();
  const std::string name = oregGetErrorName(error.code);
  const py::object exception = type(name + ": " + error.message);
  exception.attr("code") = static_cast<int>(error.code);
  exception.attr("name") = name;
  PyErr_SetObject(type.ptr(), exception.ptr());
}

}  // namespace

PYBIND11_MODULE(_driver, module) {
  module.doc() =
      "The OpenReg device driver. Needs no torch, and starts the device only where said.";

  module.attr("DriverError") =
      driverErrorType.call_once_and_store_result(createDriverErrorType).get_stored();
  py::register_exception_translator([](std::exception_ptr pending) {
    try {
      if (pending) std::rethrow_exception(pending);
    } catch (const DriverError& error) {
      raiseInPython(error);
    }
  });

  openreg::define_device_properties(module);

  module.def("device_count", &deviceCount,
             "Return the number of devices.\n\n"
             "Raises DriverError (oregErrorInvalidConfiguration) if an OPENREG_* variable is not\n"
             "valid. Starts nothing; also works in a forked child.");
  module.def("get_device_properties", &getDeviceProperties, py::arg("index"),
             "Return the DeviceProperties of a device.\n\n"
             "Raises DriverError (oregErrorInvalidDevice) if there is no device of that index.\n"
             "Starts nothing.");
  module.def("driver_version", &driverVersion, "Return major * 1000 + minor.");
  module.def("mem_get_info", &memGetInfo, py::arg("index"),
             "Return (free, total) of a device, in bytes, as torch.cuda.mem_get_info does.\n\n"
             "Starts the device. Raises DriverError: oregErrorInvalidDevice, oregErrorForked in a\n"
             "child forked after that, oregErrorInitialization without enough address space.");
}
