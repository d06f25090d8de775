"""Other forms of a sample: the same call with tensors in another layout, or with ``out=``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch.testing._internal.opinfo.core import OpInfo, SampleInput

Form = tuple[str, tuple, dict[str, Any]]
"""Name of the form, arguments, keyword arguments."""


def plain(sample: SampleInput) -> tuple[tuple, dict[str, Any]]:
    """Return the arguments and keyword arguments of the sample's call."""
    return (sample.input, *sample.args), sample.kwargs


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return tensor.contiguous(memory_format=formats.get(tensor.dim(), torch.contiguous_format))


def _expanded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[:1].expand_as(tensor) if tensor.dim() > 0 and len(tensor) > 0 else tensor


def _overlapping(tensor: torch.Tensor) -> torch.Tensor:
    """Windows that start at neighbouring elements of the same memory."""
    return tensor.contiguous().as_strided(tensor.shape, (1,) * tensor.dim())


def _sliced(tensor: torch.Tensor) -> torch.Tensor:
    """The same values behind the first three elements of a storage."""
    memory = torch.cat([tensor.new_zeros(3), tensor.flatten()])
    return memory[3:].view(tensor.shape)


def _empty(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[:0] if tensor.dim() > 0 else tensor


def _scalar(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.flatten()[0] if tensor.numel() > 0 else tensor


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    """Every second element of the memory."""
    if tensor.dim() == 64:  # PyTorch's limit
        return tensor
    memory = tensor.new_zeros((*tensor.shape, 2))
    memory[..., 0] = tensor
    return memory[..., 0]


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "non-contiguous": _strided,
    "channels last": _channels_last,
    "expanded": _expanded,
    "overlapping": _overlapping,
    "sliced": _sliced,
    "zero-size": _empty,
    "zero-dimensional": _scalar,
}


def _conjugate(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.conj_physical().conj() if tensor.is_complex() else tensor


def _negative(tensor: torch.Tensor) -> torch.Tensor:
    signed = tensor.dtype.is_signed and tensor.dtype.itemsize > 1  # 8-bit floats have no neg
    return torch._neg_view(-tensor) if signed else tensor


LAZY_BITS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "conjugate": _conjugate,
    "negative": _negative,
    "conjugate and negative": lambda t: _conjugate(_negative(t)),
}


def transformed(
    sample: SampleInput, transforms: dict[str, Callable[[torch.Tensor], torch.Tensor]]
) -> Iterator[Form]:
    """Yield the sample's call with all its dense tensors transformed, if that changes any."""
    arguments, options = plain(sample)
    for name, transform in transforms.items():
        changed = False

        def change(value: Any, transform: Callable = transform) -> Any:
            nonlocal changed
            dense = isinstance(value, torch.Tensor) and value.layout == torch.strided
            if not dense or value.is_meta:
                return value
            result = transform(value.detach())
            changed |= _form_of(result) != _form_of(value)
            return result.requires_grad_(value.requires_grad)

        form = tree_map(change, (arguments, options))
        if changed:
            yield name, *form


def _form_of(tensor: torch.Tensor) -> tuple:
    bits = (tensor.is_conj(), tensor.is_neg())
    return (tensor.shape, tensor.stride(), tensor.storage_offset(), *bits)


def _filled(shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    return torch.ones(shape, dtype=like.dtype)


OUTPUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "fitting": lambda t: _filled(t.shape, t),
    "empty": lambda t: _filled((0,), t),
    "too small": lambda t: _filled((t.numel() + 1,), t),
    "strided": lambda t: _filled((*t.shape, 2), t)[..., 0],
    "transposed": lambda t: _filled(t.shape[::-1], t).permute(tuple(reversed(range(t.dim())))),
    "of another dtype": lambda t: _filled(t.shape, t).to(
        torch.int16 if t.dtype != torch.int16 else torch.float32
    ),
}


def with_out(op: OpInfo, sample: SampleInput) -> Iterator[Form]:
    """Yield the sample's call with outputs of every kind; nothing if the call itself fails."""
    arguments, options = plain(sample)
    try:
        torch.manual_seed(0)
        expected = op(*arguments, **options)
    except Exception:
        return
    if not all(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(expected)):
        return
    for name, make in OUTPUTS.items():
        yield name, arguments, {**options, "out": tree_map(make, expected)}
