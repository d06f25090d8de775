"""What autocast does, as lists for the host. Source: "Autocast Op Reference" of torch.amp.

NumPy computes in float32 whatever the input; the lists decide what is rounded in between.
"""

from __future__ import annotations

from typing import Final


def _aten(names: str) -> tuple[str, ...]:
    return tuple(f"aten::{name}" for name in names.split())


LOWER_PRECISION: Final = _aten("""
    addbmm addmm addmv addr baddbmm bmm chain_matmul linalg_multi_dot linear matmul mm mv
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d.input conv_transpose3d.input
    convolution prelu scaled_dot_product_attention
""")
"""Products and convolutions."""

FLOAT32: Final = _aten("""
    acos asin cosh exp expm1 log log10 log1p log2 reciprocal rsqrt sinh tan
    pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor softplus gelu erfinv
    softmax.int log_softmax.int cumprod cumsum prod prod.dim_int sum sum.dim_IntList
    layer_norm group_norm norm.Scalar cosine_similarity cdist dist pdist renorm logsumexp
    binary_cross_entropy_with_logits cross_entropy_loss nll_loss mse_loss l1_loss smooth_l1_loss
    huber_loss kl_div poisson_nll_loss cosine_embedding_loss hinge_embedding_loss
    margin_ranking_loss multi_margin_loss multilabel_margin_loss soft_margin_loss
    triplet_margin_loss
""")
"""What loses too much in half precision: exponentials, sums, norms and losses."""

PROMOTE: Final = _aten("""
    addcdiv addcmul atan2 bilinear cat cross dot grid_sampler index_put scatter_add stack
    tensordot vdot
""")
"""What needs all its inputs in one data type."""
