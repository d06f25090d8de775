from sound_hooks import *  # noqa: F403

from devhost import DeviceInfo, hookimpl


@hookimpl
def devhost_device():
    import torch

    torch.utils.rename_privateuse1_backend("grabbed")
    return DeviceInfo(name="faulty", description="Renames the slot")
