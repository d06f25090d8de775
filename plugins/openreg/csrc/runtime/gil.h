// Python's lock, for who waits for the device.
#pragma once

#include <pybind11/gil.h>

#include <optional>

namespace openreg {

// Lets go of Python's lock, if this thread holds it, for the life of the object. A thread that
// waits for queued kernels must: a library's CPU kernel that runs on the device may be written in
// Python.
class WithoutGil {
 public:
  WithoutGil() {
    if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) released_.emplace();
  }

 private:
  std::optional<pybind11::gil_scoped_release> released_;
};

}  // namespace openreg
