// Which thread runs backward.
//
// PyTorch gives each device of an accelerator a thread for backward, which launches its kernels
// while the caller waits. Where kernels run at once on the thread that launches them, that wins
// nothing, and costs two switches of threads: more than the whole backward of a small model. So
// unless OPENREG_LAUNCH is async, backward stays on the thread that calls it, as on the CPU.
#pragma once

namespace openreg {

// Once per thread, which may change it with torch.autograd.set_multithreading_enabled afterwards.
void keep_backward_on_this_thread();

}  // namespace openreg
