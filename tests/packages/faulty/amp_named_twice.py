from sound_hooks import *  # noqa: F403

from devhost import AmpPolicy, hookimpl


@hookimpl
def devhost_amp():
    import torch

    return AmpPolicy(
        supported_dtypes=(torch.bfloat16,),
        default_dtype=torch.bfloat16,
        lower_precision=("aten::mm",),
        promote=("aten::mm",),
    )
