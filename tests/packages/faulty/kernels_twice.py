from sound_hooks import *  # noqa: F403

from devhost import hookimpl


@hookimpl
def devhost_kernels(registry):
    registry.impl("aten::add.Tensor", lambda left, right, alpha=1: left)
    registry.impl("aten::add.Tensor", lambda left, right, alpha=1: right)
