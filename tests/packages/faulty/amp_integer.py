from sound_hooks import *  # noqa: F403

from devhost import AmpPolicy, hookimpl


@hookimpl
def devhost_amp():
    import torch

    return AmpPolicy(supported_dtypes=(torch.int8,), default_dtype=torch.int8)
