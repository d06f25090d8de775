"""Operators that act on each element by itself: NumPy's universal functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from devhost_numpy.kernels import register as register_table

if TYPE_CHECKING:
    from devhost import KernelRegistry
    from devhost_numpy.memory import Array


def _on_integers_nothing(function: np.ufunc) -> Any:
    """Return a rounding function that leaves integers, which are round, as they are."""
    return lambda a: a if a.dtype.kind in "biu" else function(a)


def scaled(a: Array, factor: Any) -> Array:
    """Return ``a * factor`` in the type of ``a``, for a number that is nearly always 1."""
    return a if factor == 1 else a * np.asarray(factor).astype(a.dtype)


def _check_divisor(divisor: Array) -> None:
    if divisor.dtype.kind in "iu" and not divisor.all():
        raise RuntimeError("ZeroDivisionError")


def _remainder(a: Array, b: Array) -> Array:
    _check_divisor(b)
    return np.remainder(a, b)


def _fmod(a: Array, b: Array) -> Array:
    _check_divisor(b)
    return np.fmod(a, b)


def _floor_divide(a: Array, b: Array) -> Array:
    _check_divisor(b)
    return np.floor_divide(a, b)


def _divide_rounded(a: Array, b: Array, rounding_mode: str | None) -> Array:
    if rounding_mode == "floor":
        return _floor_divide(a, b)
    if a.dtype.kind in "iu":
        _check_divisor(b)
        return (a - np.fmod(a, b)) // b  # fmod has the sign of a: what is left divides exactly
    return np.trunc(np.true_divide(a, b))


def _power(a: Array, b: Array) -> Array:
    if b.dtype.kind != "i" or (b >= 0).all():
        return np.power(a, b)
    # Of integers, only 1 and -1 have an integer inverse.
    return np.where(b < 0, np.where(abs(a) == 1, np.power(a, abs(b)), 0), np.power(a, abs(b)))


def _sign(a: Array) -> Array:
    if a.dtype == bool:
        return a
    return np.where(np.isnan(a), 0, np.sign(a)).astype(a.dtype)


def sigmoid(a: Array) -> Array:
    """Return the logistic function."""
    return 1 / (1 + np.exp(-a))


def _lerp(a: Array, b: Array, weight: Array) -> Array:
    # From the nearer end, so that both ends are met exactly.
    return np.where(abs(weight) < 0.5, a + weight * (b - a), b - (b - a) * (1 - weight))


def _clamp(a: Array, min: Array | None = None, max: Array | None = None) -> Array:  # noqa: A002
    a = a if min is None else np.maximum(a, min)
    return a if max is None else np.minimum(a, max)


FLOATING = {
    "acos.out": np.arccos,
    "acosh.out": np.arccosh,
    "asin.out": np.arcsin,
    "asinh.out": np.arcsinh,
    "atan.out": np.arctan,
    "atanh.out": np.arctanh,
    "cos.out": np.cos,
    "cosh.out": np.cosh,
    "sin.out": np.sin,
    "sinh.out": np.sinh,
    "tan.out": np.tan,
    "tanh.out": np.tanh,
    "exp.out": np.exp,
    "exp2.out": np.exp2,
    "expm1.out": np.expm1,
    "log.out": np.log,
    "log10.out": np.log10,
    "log1p.out": np.log1p,
    "log2.out": np.log2,
    "sqrt.out": np.sqrt,
    "rsqrt.out": lambda a: 1 / np.sqrt(a),
    "reciprocal.out": np.reciprocal,
    "sigmoid.out": sigmoid,
    "silu.out": lambda a: a * sigmoid(a),
    "sinc.out": np.sinc,
    "div.out": np.true_divide,
}
"""Results are floating point, also those of integers."""

FLOATING_ORDERED = {
    "atan2.out": np.arctan2,
    "copysign.out": np.copysign,
}

COMMON = {
    "abs.out": np.abs,
    "neg.out": np.negative,
    "sgn.out": _sign,
    "conj_physical.out": np.conjugate,
    "add.out": lambda a, b, alpha=1: np.add(a, scaled(b, alpha)),
    "sub.out": lambda a, b, alpha=1: np.subtract(a, scaled(b, alpha)),
    "mul.out": np.multiply,
    "pow.Tensor_Tensor_out": _power,
    "pow.Tensor_Scalar_out": np.power,
    "pow.Scalar_out": _power,
    "addcmul.out": lambda a, b, c, value=1: a + scaled(b * c, value),
    "addcdiv.out": lambda a, b, c, value=1: a + scaled(b / c, value),
    "lerp.Scalar_out": _lerp,
    "lerp.Tensor_out": _lerp,
    "eq.Tensor_out": np.equal,
    "eq.Scalar_out": np.equal,
    "ne.Tensor_out": np.not_equal,
    "ne.Scalar_out": np.not_equal,
    "isnan": np.isnan,
    "bitwise_not.out": np.invert,
    "bitwise_and.Tensor_out": np.bitwise_and,
    "bitwise_or.Tensor_out": np.bitwise_or,
    "bitwise_xor.Tensor_out": np.bitwise_xor,
    "bitwise_left_shift.Tensor_out": np.left_shift,
    "bitwise_right_shift.Tensor_out": np.right_shift,
    "logical_not.out": np.logical_not,
    "logical_and.out": np.logical_and,
    "logical_or.out": np.logical_or,
    "logical_xor.out": np.logical_xor,
    "sigmoid_backward.grad_input": lambda grad, y: grad * np.conjugate((1 - y) * y),
    "tanh_backward.grad_input": lambda grad, y: grad * np.conjugate(1 - y * y),
}

COMMON_ORDERED = {
    "lt.Tensor_out": np.less,
    "lt.Scalar_out": np.less,
    "le.Tensor_out": np.less_equal,
    "le.Scalar_out": np.less_equal,
    "gt.Tensor_out": np.greater,
    "gt.Scalar_out": np.greater,
    "ge.Tensor_out": np.greater_equal,
    "ge.Scalar_out": np.greater_equal,
    "maximum.out": np.maximum,
    "minimum.out": np.minimum,
    "fmax.out": np.fmax,
    "fmin.out": np.fmin,
    "clamp.out": _clamp,
    "clamp.Tensor_out": _clamp,
    "clamp_min.out": np.maximum,
    "clamp_min.Tensor_out": np.maximum,
    "clamp_max.out": np.minimum,
    "clamp_max.Tensor_out": np.minimum,
    "sign.out": _sign,
    "floor.out": _on_integers_nothing(np.floor),
    "ceil.out": _on_integers_nothing(np.ceil),
    "trunc.out": _on_integers_nothing(np.trunc),
    "round.out": _on_integers_nothing(np.rint),
    "frac.out": lambda a: a - np.trunc(a),
    "signbit.out": lambda a: np.zeros(a.shape, bool) if a.dtype == bool else np.signbit(a),
    "isposinf.out": lambda a: a == np.inf,
    "isneginf.out": lambda a: a == -np.inf,
    "hypot.out": np.hypot,
    "logaddexp.out": np.logaddexp,
    "logaddexp2.out": np.logaddexp2,
    "gcd.out": np.gcd,
    "lcm.out": np.lcm,
    "remainder.Tensor_out": _remainder,
    "fmod.Tensor_out": _fmod,
    "floor_divide": _floor_divide,
    "floor_divide.out": _floor_divide,
    "div.out_mode": _divide_rounded,
    "relu": lambda a: np.maximum(a, 0),
    "threshold_backward.grad_input": lambda grad, a, threshold: np.where(a <= threshold, 0, grad),
}


def register(registry: KernelRegistry) -> None:
    """Register the kernels."""
    register_table(registry, FLOATING, operands="floating")
    register_table(registry, FLOATING_ORDERED, operands="floating", ordered=True)
    register_table(registry, COMMON, operands="common")
    register_table(registry, COMMON_ORDERED, operands="common", ordered=True)
