#include "kernels/fallback_policy.h"

#include <c10/util/Exception.h>
#include <c10/util/flat_hash_map.h>

#include <atomic>
#include <mutex>

namespace openreg {
namespace {

enum class Policy { kAllow, kWarn, kError };

std::atomic<Policy> policy{Policy::kAllow};

struct Counts {
  std::mutex mutex;
  ska::flat_hash_map<c10::OperatorName, int64_t> uses;
  ska::flat_hash_map<c10::OperatorName, bool> warned;
};

Counts& counts() {
  static auto* counts = new Counts();
  return *counts;
}

}  // namespace

void set_fallback_policy(const std::string& name) {
  if (name == "allow") {
    policy = Policy::kAllow;
  } else if (name == "warn") {
    policy = Policy::kWarn;
  } else if (name == "error") {
    policy = Policy::kError;
  } else {
    TORCH_CHECK_VALUE(false, "The fallback policy is 'allow', 'warn' or 'error', not '", name,
                      "'.");
  }
}

void note_fallback(const c10::OperatorHandle& op) {
  const Policy now = policy;
  TORCH_CHECK_NOT_IMPLEMENTED(
      now != Policy::kError, "The operator '", op.operator_name(),
      "' has no kernel of its own for the ", c10::get_privateuse1_backend(),
      " device, and DEVHOST_FALLBACK=error forbids running the CPU's in its place.");
  bool warn = false;
  {
    Counts& all = counts();
    const std::lock_guard<std::mutex> lock(all.mutex);
    ++all.uses[op.operator_name()];
    if (now == Policy::kWarn) warn = !std::exchange(all.warned[op.operator_name()], true);
  }
  if (warn) {
    TORCH_WARN("The operator '", op.operator_name(), "' has no kernel of its own for the ",
               c10::get_privateuse1_backend(),
               " device and runs the CPU's in its place. This is said once per operator "
               "(DEVHOST_FALLBACK=warn).");
  }
}

std::map<std::string, int64_t> fallback_stats() {
  Counts& all = counts();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::map<std::string, int64_t> stats;
  for (const auto& [name, uses] : all.uses) stats[c10::toString(name)] = uses;
  return stats;
}

void reset_fallback_stats() {
  Counts& all = counts();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.uses.clear();
}

}  // namespace openreg
