"""Convolutions in any number of dimensions, as one matrix product for each place of the filter.

A convolution relates a *wide* tensor (N, g, C, *S), the padded image, to a *narrow* one
(N, g, K, *O): N images, g groups of C and of K channels. The weight is (g, K, C, *F). Each place
in the filter meets a part of the wide tensor, of the size of the narrow one, and everything here
goes over these parts. A convolution leads from wide to narrow, a transposed one from narrow to
wide, and the gradient of either with respect to its input is the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from devhost_numpy.kernels import register as register_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from devhost import KernelRegistry
    from devhost_numpy.memory import Array

    Sizes = Sequence[int]


class _Convolution:
    """The geometry of one convolution, and what goes through it."""

    def __init__(
        self, weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
    ) -> None:
        self._stride = stride
        self._padding = padding
        self._dilation = dilation
        self._groups = groups
        self._filter = weight.shape[2:]
        self._weight = weight.reshape(groups, -1, *weight.shape[1:])

    def widen(self, image: Array) -> Array:
        """Return an image (N, g * C, *S) as wide tensor."""
        edges = [(0, 0), (0, 0), *((n, n) for n in self._padding)]
        return self.grouped(np.pad(image, edges))

    def crop(self, wide: Array) -> Array:
        """Return the image of a wide tensor."""
        sizes = wide.shape[3:]
        inside = (slice(n, size - n) for n, size in zip(self._padding, sizes, strict=True))
        return ungrouped(wide[(..., *inside)])

    def grouped(self, a: Array) -> Array:
        """Split the channels of a tensor into groups."""
        return a.reshape(a.shape[0], self._groups, -1, *a.shape[2:])

    def narrow_sizes(self, wide: Sizes) -> list[int]:
        """Return the sizes *O of the narrow tensor for a wide one."""
        every = zip(wide, self._stride, self._dilation, self._filter, strict=True)
        return [(n - d * (f - 1) - 1) // s + 1 for n, s, d, f in every]

    def wide_sizes(self, narrow: Sizes, extra: Sizes) -> list[int]:
        """Return the sizes *S of a wide tensor; its last ``extra`` elements meet no filter."""
        every = zip(narrow, self._stride, self._dilation, self._filter, extra, strict=True)
        return [(n - 1) * s + d * (f - 1) + 1 + e for n, s, d, f, e in every]

    def to_narrow(self, wide: Array, sizes: Sizes) -> Array:
        """Convolve."""
        narrow = sum(
            self._weight[(..., *place)] @ _flat(wide[(..., *part)])
            for place, part in self._parts(sizes)
        )
        return np.reshape(narrow, (*np.shape(narrow)[:3], *sizes))

    def to_wide(self, narrow: Array, sizes: Sizes) -> Array:
        """Convolve transposed."""
        images, groups = narrow.shape[:2]
        wide = np.zeros((images, groups, self._weight.shape[2], *sizes), narrow.dtype)
        flat = _flat(narrow)
        for place, part in self._parts(narrow.shape[3:]):
            met = wide[(..., *part)]
            met += (self._weight[(..., *place)].swapaxes(1, 2) @ flat).reshape(met.shape)
        return wide

    def weight_gradient(self, wide: Array, narrow: Array) -> Array:
        """Return the gradient (g * K, C, *F) of the weight; one of both is the result's."""
        gradient = np.empty_like(self._weight)
        flat = _flat(narrow)
        for place, part in self._parts(narrow.shape[3:]):
            products = flat @ _flat(wide[(..., *part)]).swapaxes(2, 3)
            gradient[(..., *place)] = products.sum(0)
        return gradient.reshape(-1, *gradient.shape[2:])

    def _parts(self, sizes: Sizes) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yield each place in the filter, and the part of the wide tensor that it meets."""
        for place in np.ndindex(*self._filter):
            every = zip(place, self._dilation, sizes, self._stride, strict=True)
            yield place, tuple(slice(i * d, i * d + (n - 1) * s + 1, s) for i, d, n, s in every)


def ungrouped(a: Array) -> Array:
    """Join the groups of channels."""
    return a.reshape(a.shape[0], a.shape[1] * a.shape[2], *a.shape[3:])


def _flat(a: Array) -> Array:
    return a.reshape(*a.shape[:3], -1)


def _forward(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
) -> Array:
    convolution = _Convolution(weight, stride, padding, dilation, groups)
    if transposed:
        narrow = convolution.grouped(x)
        sizes = convolution.wide_sizes(x.shape[2:], output_padding)
        result = convolution.crop(convolution.to_wide(narrow, sizes))
    else:
        wide = convolution.widen(x)
        sizes = convolution.narrow_sizes(wide.shape[3:])
        result = ungrouped(convolution.to_narrow(wide, sizes))
    return result if bias is None else result + bias.reshape(-1, *(1 for _ in stride))


def _backward(
    grad: Array,
    x: Array,
    weight: Array,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Array | None, Array | None, Array | None]:
    convolution = _Convolution(weight, stride, padding, dilation, groups)
    image, result = (grad, x) if transposed else (x, grad)
    wide, narrow = convolution.widen(image), convolution.grouped(result)
    grad_x = grad_weight = grad_bias = None
    if output_mask[0] and transposed:
        grad_x = ungrouped(convolution.to_narrow(wide, narrow.shape[3:]))
    elif output_mask[0]:
        grad_x = convolution.crop(convolution.to_wide(narrow, wide.shape[3:]))
    if output_mask[1]:
        grad_weight = convolution.weight_gradient(wide, narrow)
    if output_mask[2]:
        grad_bias = grad.sum((0, *range(2, grad.ndim)))
    return grad_x, grad_weight, grad_bias


CONVOLUTIONS = {
    "convolution_overrideable": _forward,
    "convolution_backward_overrideable": _backward,
}


def register(registry: KernelRegistry) -> None:
    """Register the kernels."""
    register_table(registry, CONVOLUTIONS)
