from sound_hooks import *  # noqa: F403

from devhost import DeviceInfo, hookimpl


@hookimpl
def devhost_device():
    return DeviceInfo(name="nn", description="Has a name that is taken")
