from minimal_plugin import Runtime
from working_hooks import *  # noqa: F403

from devhost import hookimpl


@hookimpl
def devhost_runtime():
    import torch

    torch.set_default_device("meta")
    return Runtime()
