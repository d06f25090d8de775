from sound_hooks import *  # noqa: F403

from devhost import hookimpl


@hookimpl
def devhost_kernels(registry):
    registry.define("faulty::twice(Tensor x) -> Tensor")
    registry.impl("aten::add.Tensor", lambda left, right, alpha=1: left)
    raise OSError("out of memory half-way")
