from sound_hooks import *  # noqa: F403

from devhost import hookimpl


@hookimpl
def devhost_kernels(registry):
    registry.impl("aten::to.dtype", lambda tensor, dtype, *arguments: tensor)
