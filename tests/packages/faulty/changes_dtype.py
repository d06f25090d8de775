from working_hooks import *  # noqa: F403

from devhost import hookimpl


@hookimpl
def devhost_kernels(registry):
    import minimal_kernels
    import torch

    torch.set_default_dtype(torch.float64)
    minimal_kernels.register(registry)
