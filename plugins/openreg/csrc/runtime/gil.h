// Python's lock, for who waits for the device.
#pragma once

#include <torch/csrc/python_headers.h>

namespace openreg {

// Lets go of Python's lock, if this thread holds it, for the life of the object. A thread that
// waits for queued kernels must: a library's CPU kernel that runs on the device may be written in
// Python.
class WithoutGil {
 public:
  WithoutGil()
      : state_(Py_IsInitialized() != 0 && PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr) {
  }
  ~WithoutGil() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace openreg
