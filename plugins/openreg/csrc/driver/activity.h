// Records of what the device has done, for profilers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "openreg.h"

namespace openreg {

// One piece of work, from its submission to its end. Whoever submits work asks isWanted() first, so
// that nothing is paid while nobody listens.
class Activity {
 public:
  static bool isWanted();

  // On the submitting thread, whose correlation it takes.
  Activity(oregActivityKind kind, int device, oregStream_t stream, std::size_t bytes = 0,
           oregMemcpyKind copyKind = oregMemcpyHostToHost);

  oregActivityKind kind() const { return record_.kind; }

  // On the thread that runs the work, which began some time ago. end() calls the subscriber.
  void begin(std::chrono::nanoseconds ago = {});
  void end();

 private:
  oregActivity record_;
};

}  // namespace openreg
