// The OPENREG_* environment variables.
#pragma once

#include <cstddef>
#include <mutex>

namespace openreg {

struct Config {
  int deviceCount;
  std::size_t memory;  // bytes per device, whole pages
};

// Read from the environment by the first call that succeeds. Throws oregErrorInvalidConfiguration.
const Config& config();

// Guards the steps that happen once per process: reading the environment and starting the driver.
// Held across fork(), so that a child never inherits it locked.
extern constinit std::mutex onceMutex;

}  // namespace openreg
