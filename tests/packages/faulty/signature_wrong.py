from sound_hooks import devhost_device, devhost_runtime  # noqa: F401

from devhost import hookimpl


@hookimpl
def devhost_kernels(kernel_registry):
    pass


@hookimpl
def devhost_probe(*arguments):
    pass
