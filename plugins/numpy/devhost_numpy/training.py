"""Softmax, the loss of a classifier, and batch normalization, with their derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from devhost_numpy.kernels import register as register_table
from devhost_numpy.memory import from_array, store, values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from devhost import KernelRegistry
    from devhost_numpy.memory import Array

_NONE, _MEAN = 0, 1  # of PyTorch's enumeration of reductions


def _axis(a: Array, dim: int) -> int | None:
    return dim if a.ndim else None


def _shifted(a: Array, dim: int) -> Array:
    """Return ``a`` minus its largest element along ``dim``, so that no exponential overflows."""
    return a - np.max(a, _axis(a, dim), keepdims=True, initial=-np.inf)


def _softmax(a: Array, dim: int, half_to_float: bool) -> Array:
    powers = np.exp(_shifted(a, dim))
    return powers / powers.sum(_axis(a, dim), keepdims=True)


def _log_softmax(a: Array, dim: int, half_to_float: bool) -> Array:
    shifted = _shifted(a, dim)
    return shifted - np.log(np.exp(shifted).sum(_axis(a, dim), keepdims=True))


def _softmax_backward(grad: Array, output: Array, dim: int, input_dtype: torch.dtype) -> Array:
    product = grad * output
    return product - output * product.sum(_axis(grad, dim), keepdims=True)


def _log_softmax_backward(grad: Array, output: Array, dim: int, input_dtype: torch.dtype) -> Array:
    return grad - np.exp(output) * grad.sum(_axis(grad, dim), keepdims=True)


def _classes(
    scores: Array, target: Array, weight: Array | None, ignore_index: int
) -> tuple[Array, Array]:
    """Return the class of each sample, as an index that is always valid, and its weight."""
    target = np.atleast_1d(target)
    used = target != ignore_index
    wrong = target[used & ((target < 0) | (target >= scores.shape[-1]))]
    if wrong.size:
        raise IndexError(f"Target {wrong[0]} is out of bounds.")
    classes = np.where(used, target, 0)
    weights = np.ones(classes.shape, scores.dtype) if weight is None else weight[classes]
    return classes, np.where(used, weights, 0)


def _nll_loss(
    scores: Array, target: Array, weight: Array | None, reduction: int, ignore_index: int
) -> tuple[Array, Array]:
    classes, weights = _classes(scores, target, weight, ignore_index)
    chosen = np.take_along_axis(np.atleast_2d(scores), classes[:, None], 1)[:, 0]
    losses = np.where(weights == 0, 0, -chosen * weights).astype(scores.dtype)
    if reduction == _NONE:
        return losses.reshape(target.shape), np.zeros((), scores.dtype)
    total = weights.sum(dtype=scores.dtype)
    loss = losses.sum()
    return loss / total if reduction == _MEAN else loss, total


def _nll_loss_backward(
    grad: Array,
    scores: Array,
    target: Array,
    weight: Array | None,
    reduction: int,
    ignore_index: int,
    total_weight: Array,
) -> Array:
    classes, weights = _classes(scores, target, weight, ignore_index)
    each = -grad * weights / (total_weight if reduction == _MEAN else 1)
    result = np.zeros_like(np.atleast_2d(scores))
    np.put_along_axis(result, classes[:, None], each[:, None], 1)
    return result.reshape(scores.shape)


def _channels(a: Array | float, like: Array) -> Array:
    """Shape one number for each channel so that it broadcasts over (N, C, ...)."""
    return np.reshape(a, (-1, *(1 for _ in range(like.ndim - 2))))


def _follow(running: torch.Tensor | None, value: Array, momentum: float) -> None:
    if running is not None:
        old = values(running)
        store(running, old + momentum * (value - old))


def _batch_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalize. Takes tensors: it writes to the running statistics, and its schema hides that."""
    a = values(x)
    if training:
        every = (0, *range(2, a.ndim))
        mean = a.mean(every, dtype=np.float64)
        variance = a.var(every, dtype=np.float64)
        count = a.size // max(a.shape[1], 1)
        _follow(running_mean, mean, momentum)
        _follow(running_var, variance * (count / max(count - 1, 1)), momentum)
    else:
        mean, variance = values(running_mean), values(running_var)
    inverse = (1 / np.sqrt(variance + eps)).astype(a.dtype)
    result = (a - _channels(mean.astype(a.dtype), a)) * _channels(inverse, a)
    if weight is not None:
        result = result * _channels(values(weight), a)
    if bias is not None:
        result = result + _channels(values(bias), a)
    saved = (mean, inverse) if training else (np.empty(0), np.empty(0))
    dtype = x.dtype if weight is None else weight.dtype
    return from_array(result, x.dtype), from_array(saved[0], dtype), from_array(saved[1], dtype)


def _batch_norm_backward(
    grad: Array,
    x: Array,
    weight: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    mean: Array | None,
    inverse: Array | None,
    training: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple[Array | None, ...]:
    if not training:
        mean, inverse = running_mean, 1 / np.sqrt(running_var + eps)
    every = (0, *range(2, x.ndim))
    normal = (x - _channels(mean, x)) * _channels(inverse, x)
    grad_bias = grad.sum(every)
    grad_weight = (grad * normal).sum(every)
    grad_x = grad
    if training:
        count = x.size // max(x.shape[1], 1)
        grad_x = grad - _channels(grad_bias / count, x) - normal * _channels(grad_weight / count, x)
    grad_x = grad_x * _channels(inverse if weight is None else weight * inverse, x)
    gradients = (grad_x.astype(x.dtype), grad_weight, grad_bias)
    return tuple(g if wanted else None for g, wanted in zip(gradients, output_mask, strict=True))


UNCHANGED = {
    "_softmax.out": _softmax,
    "_log_softmax.out": _log_softmax,
    "_softmax_backward_data.out": _softmax_backward,
    "_log_softmax_backward_data.out": _log_softmax_backward,
    "nll_loss_forward.output": _nll_loss,
    "nll_loss_backward.grad_input": _nll_loss_backward,
    "native_batch_norm_backward": _batch_norm_backward,
}


def register(registry: KernelRegistry) -> None:
    """Register the kernels."""
    register_table(registry, UNCHANGED, ordered=True)
    registry.impl("aten::native_batch_norm", _batch_norm)
