from sound_hooks import devhost_device, devhost_probe, devhost_runtime  # noqa: F401

from devhost import hookimpl


@hookimpl
def devhost_kernel(registry):
    pass
