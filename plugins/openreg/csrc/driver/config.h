// The OPENREG_* environment variables.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "openreg.h"

namespace openreg {

struct Config {
  int deviceCount() const { return static_cast<int>(ordinals.size()); }

  std::vector<int> ordinals;  // of the visible devices, in the order in which they are numbered
  std::size_t memory;         // bytes per device, whole pages
  oregLaunchMode launchMode;
};

// Read from the environment by the first call that succeeds. Throws oregErrorInvalidConfiguration.
const Config& config();

// Guards the steps that happen once per process: reading the environment and starting the driver.
// Held across fork(), so that a child never inherits it locked.
extern constinit std::mutex onceMutex;

}  // namespace openreg
