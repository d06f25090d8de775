// How the driver reports failures: inside by exception, at the C boundary by code and message.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "openreg.h"

namespace openreg {

class Error : public std::exception {
 public:
  Error(oregError_t code, std::string message) : code_(code), message_(std::move(message)) {}
  oregError_t code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  oregError_t code_;
  std::string message_;
};

// Throws an Error with a printf-style message.
[[noreturn, gnu::format(printf, 2, 3)]] void fail(oregError_t code, const char* format, ...);

// Makes this the calling thread's last error, and returns the code.
oregError_t recordError(oregError_t code, const char* message);

// The body of every C function that can fail. A body may return oregErrorNotReady, which is an
// answer and so is not recorded. Not noexcept: pthread_exit inside a kernel unwinds through here.
template <typename Body>
oregError_t guarded(Body&& body) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body>>) {
      body();
      return oregSuccess;
    } else {
      return body();
    }
  } catch (const Error& error) {
    return recordError(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return recordError(oregErrorMemoryAllocation,
                       "the host has no memory left for the driver's own records");
  }
}

// For the pointers through which results are returned.
inline void requireResult(const void* pointer, const char* name) {
  if (pointer == nullptr) fail(oregErrorInvalidValue, "the result pointer '%s' is null", name);
}

}  // namespace openreg
