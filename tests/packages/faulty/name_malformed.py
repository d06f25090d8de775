from sound_hooks import *  # noqa: F403

from devhost import DeviceInfo, hookimpl


@hookimpl
def devhost_device():
    return DeviceInfo(name="faulty2", description="Has a digit in its name")
