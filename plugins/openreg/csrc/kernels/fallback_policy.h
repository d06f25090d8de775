// What happens when an operator has no kernel of its own: allowed, announced once, or refused.
// Every use is counted.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <map>
#include <string>

namespace openreg {

// "allow", "warn" (once per operator) or "error". Throws for anything else.
void set_fallback_policy(const std::string& policy);

// Counts one use by `op` and warns or throws as the policy says.
void note_fallback(const c10::OperatorHandle& op);

// Uses per operator since the last reset.
std::map<std::string, int64_t> fallback_stats();
void reset_fallback_stats();

}  // namespace openreg
