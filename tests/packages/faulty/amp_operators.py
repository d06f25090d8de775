from sound_hooks import *  # noqa: F403

from devhost import AmpPolicy, hookimpl


@hookimpl
def devhost_kernels(registry):
    registry.impl("aten::mv", lambda matrix, vector: matrix, "AutocastPrivateUse1")


@hookimpl
def devhost_amp():
    import torch

    return AmpPolicy(
        supported_dtypes=(torch.bfloat16,),
        default_dtype=torch.bfloat16,
        lower_precision=("aten::matmull", "mm", "aten::mv"),
        float32=("aten::softmax",),
        promote=("aten::add_.Tensor", "aten::add.out"),
    )
