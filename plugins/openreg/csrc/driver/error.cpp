#include "error.h"

#include <cstdarg>
#include <cstdio>

namespace openreg {
namespace {

// A plain buffer, not a std::string: other libraries' thread-exit code may still call the driver
// after a string of this thread would have been destroyed.
struct LastError {
  oregError_t code;
  char message[512];
};
constinit thread_local LastError lastError{};

struct Description {
  const char* name;
  const char* sentence;
};

Description describe(oregError_t error) {
  switch (error) {
    case oregSuccess:
      return {"oregSuccess", "no error"};
    case oregErrorInvalidValue:
      return {"oregErrorInvalidValue", "an argument is out of range, null or not a known pointer"};
    case oregErrorMemoryAllocation:
      return {"oregErrorMemoryAllocation", "out of memory"};
    case oregErrorInvalidConfiguration:
      return {"oregErrorInvalidConfiguration", "an OPENREG_* environment variable is not valid"};
    case oregErrorInitialization:
      return {"oregErrorInitialization", "the driver could not get what it needs from the system"};
    case oregErrorForked:
      return {"oregErrorForked",
              "the device was in use before fork() and cannot be used in the child"};
    case oregErrorInvalidDevice:
      return {"oregErrorInvalidDevice", "no device has this index"};
    case oregErrorInvalidMemcpyDirection:
      return {"oregErrorInvalidMemcpyDirection",
              "the pointers do not fit the direction of the copy"};
    case oregErrorInvalidResourceHandle:
      return {"oregErrorInvalidResourceHandle", "the stream or event cannot be used here"};
    case oregErrorNotReady:
      return {"oregErrorNotReady", "the work has not finished yet"};
    case oregErrorLaunchFailure:
      return {"oregErrorLaunchFailure", "a kernel failed"};
    case oregErrorNoDevice:
      return {"oregErrorNoDevice", "no device is visible to this process"};
  }
  return {"oregErrorUnknown", "not an error code of this driver"};
}

}  // namespace

void fail(oregError_t code, const char* format, ...) {
  char message[sizeof(LastError::message)];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  throw Error(code, message);
}

oregError_t recordError(oregError_t code, const char* message) {
  lastError.code = code;
  std::snprintf(lastError.message, sizeof(lastError.message), "%s", message);
  return code;
}

}  // namespace openreg

using namespace openreg;

const char* oregGetErrorName(oregError_t error) { return describe(error).name; }

const char* oregGetErrorString(oregError_t error) { return describe(error).sentence; }

oregError_t oregGetLastError(void) { return std::exchange(lastError.code, oregSuccess); }

oregError_t oregPeekAtLastError(void) { return lastError.code; }

const char* oregGetLastErrorMessage(void) { return lastError.message; }
