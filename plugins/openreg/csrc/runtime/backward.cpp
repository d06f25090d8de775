#include "runtime/backward.h"

#include <c10/core/AutogradState.h>

#include <utility>

#include "openreg.h"
#include "runtime/error.h"

namespace openreg {

void keep_backward_on_this_thread() {
  thread_local bool decided = false;
  if (std::exchange(decided, true)) return;
  oregLaunchMode mode = oregLaunchInline;
  OREG_CHECK(oregGetLaunchMode(&mode));
  if (mode == oregLaunchInline) {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  }
}

}  // namespace openreg
