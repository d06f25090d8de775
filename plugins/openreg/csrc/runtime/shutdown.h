#pragma once

namespace openreg {

// Brings the device's threads to rest, for when the Python interpreter is about to end: a thread
// that needs the interpreter after that aborts the process. Called without the GIL.
void finish_work_before_exit();

}  // namespace openreg
