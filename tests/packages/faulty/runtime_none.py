from sound_hooks import devhost_device, devhost_kernels, devhost_probe  # noqa: F401

from devhost import hookimpl


@hookimpl
def devhost_runtime():
    return None
