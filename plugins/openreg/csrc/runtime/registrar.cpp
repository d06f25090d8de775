#include "runtime/registrar.h"

#include <vector>

namespace openreg {
namespace {

// Made when the first file asks for it: the order of static initialisers between files is open.
std::vector<void (*)()>& registrations() {
  static std::vector<void (*)()> list;
  return list;
}

}  // namespace

bool at_first_use(void (*registration)()) {
  registrations().push_back(registration);
  return true;
}

void register_kernels() {
  for (const auto registration : registrations()) registration();
}

}  // namespace openreg
