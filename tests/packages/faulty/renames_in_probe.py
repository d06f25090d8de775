from sound_hooks import *  # noqa: F403

from devhost import ProbeResult, hookimpl


@hookimpl
def devhost_probe():
    import torch

    torch.utils.rename_privateuse1_backend("grabbed")
    return ProbeResult(available=True, devices=("Faulty",))
