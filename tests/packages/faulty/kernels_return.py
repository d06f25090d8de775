import minimal_plugin
from working_hooks import *  # noqa: F403

from devhost import hookimpl


@hookimpl
def devhost_kernels(registry):
    minimal_plugin.devhost_kernels(registry)
    return 7
