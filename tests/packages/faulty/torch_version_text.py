from sound_hooks import *  # noqa: F403

from devhost import DeviceInfo, hookimpl


@hookimpl
def devhost_device():
    return DeviceInfo(name="faulty", description="Faulty", torch_min="newest")
