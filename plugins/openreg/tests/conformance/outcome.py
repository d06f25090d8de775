"""Runs a call on one device, and compares what a caller can see of it with a run on another."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map

if TYPE_CHECKING:
    from collections.abc import Callable

CPU = torch.device("cpu")


@dataclass
class Outcome:
    """What one call has done.

    Attributes:
        placed: Whether the call has a tensor or a device in it, and so a device to run on.
        arguments: The tensors among the arguments, as the call has left them.
        written: Whether the version of each of them has changed.
        results: All leaves of what it has returned; empty if it has raised.
        error: What it has raised.
        warnings: Category and text of every warning, in order.
    """

    placed: bool
    arguments: list[torch.Tensor]
    written: list[bool]
    results: list[Any]
    error: Exception | None
    warnings: list[tuple[type[Warning], str]]

    @property
    def tensors(self) -> list[torch.Tensor]:
        """Arguments and results."""
        return [*self.arguments, *_tensors(self.results)]


def run(function: Callable[..., Any], arguments: tuple, options: dict, device: torch.device):
    """Call the function with copies of its arguments on the device.

    Args:
        function: Is called as ``function(*arguments, **options)``, with the device's random numbers
            seeded.
        arguments: Any structure with CPU tensors in it.
        options: The same for keyword arguments. A device in it is replaced by ``device``.
        device: Where to run.
    """
    mirror = Mirror(device)
    arguments, options = tree_map(mirror, (arguments, options))
    tensors = _tensors(tree_leaves((arguments, options)))
    versions = [tensor._version for tensor in tensors]
    torch.default_generator.manual_seed(0)  # torch.manual_seed formats the stack for other devices
    if device != CPU:
        torch.get_device_module(device).manual_seed(0)
    results, error = [], None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            results = tree_leaves(function(*arguments, **options))
        except Exception as raised:
            error = raised.with_traceback(None)  # which would keep all tensors in a cycle
    return Outcome(
        mirror.used,
        tensors,
        [tensor._version > version for tensor, version in zip(tensors, versions, strict=True)],
        results,
        error,
        [(warning.category, str(warning.message)) for warning in caught],
    )


def _tensors(leaves: list[Any]) -> list[torch.Tensor]:
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


class Mirror:
    """Copies CPU tensors to a device as they are: bytes, strides, offset, lazy bits, shared memory.

    ``Tensor.to`` makes expanded and overlapping tensors dense and separates views of one storage,
    so that a kernel would see another case than the sample is meant to be.

    Attributes:
        used: Whether there has been anything to copy or to replace.
    """

    def __init__(self, device: torch.device) -> None:
        self.used = False
        self._device = device
        self._copies: dict[int, torch.Tensor] = {}
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._originals: list[torch.Tensor] = []  # an id is unique while its owner lives

    def __call__(self, value: Any) -> Any:
        """Return the copy of a tensor, the device for a device, and anything else as it is."""
        if isinstance(value, torch.Tensor) and value.device == CPU:
            self.used = True
            if id(value) not in self._copies:
                self._originals.append(value)
                copy = self._copy(value.detach()).requires_grad_(value.requires_grad)
                self._copies[id(value)] = copy
            return self._copies[id(value)]
        if value == CPU or (isinstance(value, str) and value == "cpu"):
            self.used = True
            return self._device
        return value

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout != torch.strided or tensor.is_quantized:
            return tensor.to(self._device, copy=True)
        if tensor.is_conj():
            return self._copy(tensor.conj()).conj()
        if tensor.is_neg():
            return torch._neg_view(self._copy(torch._neg_view(tensor)))
        shell = torch.empty(0, dtype=tensor.dtype, device=self._device)
        return shell.set_(
            self._storage(tensor.untyped_storage()),
            tensor.storage_offset(),
            tensor.size(),
            tensor.stride(),
        )

    def _storage(self, storage: torch.UntypedStorage) -> torch.UntypedStorage:
        if storage._cdata not in self._storages:
            data = torch.empty(0, dtype=torch.uint8).set_(storage)
            self._storages[storage._cdata] = data.to(self._device, copy=True).untyped_storage()
        return self._storages[storage._cdata]


def assert_same(actual: Outcome, expected: Outcome, device: torch.device) -> None:
    """Require of a run on the device everything that the CPU has done.

    Raises:
        AssertionError: Anything differs, or a result is not on the device.
    """
    _require("error", _description(actual.error), _description(expected.error))
    _require("warnings", *(_normalized_warnings(o.warnings) for o in (actual, expected)))
    _require("types", [type(r) for r in actual.results], [type(r) for r in expected.results])
    for got, want in zip(actual.results, expected.results, strict=True):
        if not isinstance(got, torch.Tensor) and (got == got or want == want):  # not both NaN
            _require("result", got, want)
    for got, want in zip(actual.tensors, expected.tensors, strict=True):
        if want.device == CPU and actual.placed:
            _require("device", got.device, device)
        _require("metadata", _metadata(got), _metadata(want))
        if not want.is_meta:
            _require_close(_values(got), _values(want))
    # A composite operator may count a write to a view that the CPU's own kernel does not count.
    missed = [w and not a for a, w in zip(actual.written, expected.written, strict=True)]
    if any(missed):
        raise AssertionError(f"autograd does not notice writes to arguments: {missed}")
    _require("aliasing", _aliasing(actual.tensors), _aliasing(expected.tensors))


def _require(what: str, got: Any, want: Any) -> None:
    if got != want:
        raise AssertionError(f"{what} differs from the CPU's:\n  {got}\ninstead of\n  {want}")


def _require_close(got: torch.Tensor, want: torch.Tensor) -> None:
    # Nearly all are equal, which is much faster to see where torch.equal() can.
    can_see = want.layout == torch.strided and want.dtype != torch.complex32
    if not (can_see and torch.equal(got, want)):
        assert_close(got, want, equal_nan=True)


def _description(error: Exception | None) -> str:
    return "no error" if error is None else _normalized(f"{type(error).__name__}: {error}")


def _normalized_warnings(caught: list[tuple[type[Warning], str]]) -> list[tuple]:
    """Return each once: how many copies an operator makes on its way is its own business."""
    # PyTorch says that a layout is in beta state whenever a tensor of it is made.
    said = [
        (category, _normalized(text)) for category, text in caught if "in beta state" not in text
    ]
    return list(dict.fromkeys(said))


def _normalized(text: str) -> str:
    """Take out of a message what must differ: the name of the device."""
    text = re.sub(r", device='\w+:\d+'", "", text)  # in the text of a tensor
    text = re.sub(r"\btorch\.(\w+)Tensor\b|\b(?:CPU|openreg)(\w+)Type\b", r"\1\2", text)
    text = re.sub(r"\bopenreg:\d+\b|\b(cpu|openreg)\b", "DEVICE", text)
    return re.sub(r"\b(Sparse|SparseCsr|Quantized)?(CPU|openreg|PrivateUse1)\b", r"\1DEVICE", text)


def _metadata(tensor: torch.Tensor) -> dict[str, Any]:
    metadata = {
        "dtype": tensor.dtype,
        "shape": tensor.shape,
        "layout": tensor.layout,
        "requires_grad": tensor.requires_grad,
    }
    if tensor.layout == torch.strided:
        metadata["strides"] = tensor.stride()
        metadata["offset"] = tensor.storage_offset()
        metadata["conj"] = tensor.is_conj()
        metadata["neg"] = tensor.is_neg()
    return metadata


def _values(tensor: torch.Tensor) -> torch.Tensor:
    host = tensor.detach().cpu().resolve_conj().resolve_neg()
    return host.flatten() if host.layout == torch.strided else host  # comparing adds dimensions


def _aliasing(tensors: list[torch.Tensor]) -> list[tuple[int, int]]:
    """Number the objects and the storages, so that equal numbers mean one and the same."""
    objects: dict[int, int] = {}
    storages: dict[int, int] = {}
    return [
        (
            objects.setdefault(id(tensor), len(objects)),
            storages.setdefault(
                tensor.untyped_storage()._cdata if tensor.layout == torch.strided else id(tensor),
                len(storages),
            ),
        )
        for tensor in tensors
    ]
