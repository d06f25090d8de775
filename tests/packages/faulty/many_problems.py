from sound_hooks import devhost_probe  # noqa: F401

from devhost import DeviceInfo, hookimpl


@hookimpl
def devhost_device():
    return DeviceInfo(name="cuda", description="Faulty", spec_version=7, torch_min="99.0")


@hookimpl
def devhost_kernels():
    pass
