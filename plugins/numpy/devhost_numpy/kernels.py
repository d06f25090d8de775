"""NumPy functions as PyTorch kernels: what all of them have in common.

PyTorch makes most operators of one that writes to an output: ``add`` and ``add_`` prepare the
output and call ``add.out``. So the tables in the other modules name that one, and the function of
NumPy that computes it. A kernel reads its tensors as arrays, calls the function, and stores what it
returns.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devhost_numpy.memory import (
    DEVICE,
    DTYPES,
    compute_dtype,
    from_array,
    is_computable,
    resize_output,
    store,
    values,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from devhost import KernelRegistry
    from devhost_numpy.memory import Array

    Function = Callable[..., Any]

_TORCH_DTYPES = {dtype: ours for ours, dtype in DTYPES.items()}
_NUMBERS = (bool, int, float, complex)


def operator(name: str) -> torch._ops.OpOverload:
    """Return the operator with that name, without ``aten::``."""
    base, _, overload = name.partition(".")
    found: torch._ops.OpOverload = getattr(getattr(torch.ops.aten, base), overload or "default")
    return found


def convert(argument: Any, to: Callable[[torch.Tensor], Any]) -> Any:
    """Return an argument of an operator with ``to`` applied to the tensors in it."""
    if isinstance(argument, torch.Tensor):
        return to(argument)
    if isinstance(argument, (list, tuple)):
        return [convert(item, to) for item in argument]
    return argument


def register(
    registry: KernelRegistry,
    table: dict[str, Function],
    *,
    operands: str = "unchanged",
    ordered: bool = False,
) -> None:
    """Register functions on arrays as kernels.

    A function takes the operator's arguments without its outputs, and returns an array for each
    output or result; that of an operator in place returns the new values of the first argument.
    Where NumPy has not got a data type, the kernel leaves the call to the CPU.

    Args:
        registry: Its fallback must have been made.
        table: The functions, by name of the operator without ``aten::``.
        operands: What the positional arguments, tensors and numbers, are converted to before:
            their ``"common"`` data type; that, but at least ``"floating"`` point; or the data type
            of the ``"output"``.
        ordered: The functions need an order, which complex numbers have not.
    """
    for name, function in table.items():
        kernel = _Kernel(name, function, operands, ordered, registry.fallback_control)
        registry.impl(f"aten::{name}", kernel)


class _Kernel:
    """One function as the kernel of one operator."""

    def __init__(
        self, name: str, function: Function, operands: str, ordered: bool, fallback: Any
    ) -> None:
        self._operator = operator(name)
        self._function = function
        self._operands = operands
        self._ordered = ordered
        self._fallback = fallback
        parameters = self._operator._schema.arguments
        self._outputs = [parameter.name for parameter in parameters if parameter.is_out]
        self._in_place = _is_written(parameters[0]) and not parameters[0].is_out
        # Indices may be on the CPU; everything else must be on the device.
        self._indexes = any(parameter.name == "indices" for parameter in parameters)
        # The condition of `where` has no part in the data type of its result.
        self._first_operand = 1 if parameters[0].name == "condition" else 0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        tensors = list(_tensors_in((*arguments, *options.values())))
        if not all(map(self._can_compute, tensors)):
            return self._fallback(self._operator, *arguments, **options)
        if not self._indexes:
            _check_devices(tensors)
        outputs = [options.pop(name) for name in self._outputs]
        dtype, read = self._reader(arguments, outputs)
        with np.errstate(all="ignore"):
            try:
                results = self._function(
                    *map(read, arguments),
                    **{name: convert(option, values) for name, option in options.items()},
                )
            except ValueError as error:  # NumPy's, for shapes that do not fit
                raise RuntimeError(f"{self._operator.name()}: {error}") from error
            if self._in_place:
                store(arguments[0], results)
                return arguments[0]
            if not outputs:
                return _wrap(results, dtype)
            for output, result in zip(outputs, _as_tuple(results), strict=True):
                _deliver(output, np.asarray(result))
            return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _can_compute(self, tensor: torch.Tensor) -> bool:
        return is_computable(tensor.dtype) and not (self._ordered and tensor.is_complex())

    def _reader(
        self, arguments: tuple[Any, ...], outputs: list[torch.Tensor]
    ) -> tuple[torch.dtype, Callable[[Any], Any]]:
        """Return the data type of the operation, and what makes an array of an operand."""
        if self._operands == "unchanged":
            dtype = next(_tensors_in((*arguments, *outputs))).dtype
            return dtype, lambda argument: convert(argument, values)
        if self._operands == "output":
            dtype, numbers = outputs[0].dtype, ()
        else:
            dtype, numbers = _common_dtype(arguments[self._first_operand :]), _NUMBERS
            if self._operands == "floating" and not (dtype.is_floating_point or dtype.is_complex):
                dtype = torch.get_default_dtype()
        to = DTYPES[compute_dtype(dtype)]

        def read(argument: Any) -> Any:
            if isinstance(argument, numbers):
                return np.asarray(argument).astype(to)
            return convert(argument, lambda tensor: values(tensor).astype(to, copy=False))

        return dtype, read


def _is_written(parameter: Any) -> bool:
    return parameter.alias_info is not None and parameter.alias_info.is_write


def _tensors_in(arguments: Iterable[Any]) -> Iterator[torch.Tensor]:
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            yield argument
        elif isinstance(argument, (list, tuple)):
            yield from _tensors_in(argument)


def _as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def _check_devices(tensors: list[torch.Tensor]) -> None:
    for tensor in tensors:
        if tensor.device != DEVICE and tensor.dim() > 0:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{tensor.device} and {DEVICE}!"
            )


def _common_dtype(operands: Iterable[Any]) -> torch.dtype:
    """Return the data type that PyTorch computes in for these tensors and numbers."""
    tensors = list(_tensors_in(operands))
    numbers = [operand for operand in operands if isinstance(operand, _NUMBERS)]
    first, *others = (*tensors, *numbers)
    pairs = (torch.result_type(first, other) for other in others)
    return functools.reduce(torch.promote_types, pairs, *([] if others else [first.dtype]))


def _deliver(output: torch.Tensor, result: Array) -> None:
    """Write a result to an output, which gets its shape. Raises as PyTorch does."""
    dtype = _TORCH_DTYPES[result.dtype]
    if not torch.can_cast(dtype, output.dtype):
        raise RuntimeError(
            f"result type {dtype} can't be cast to the desired output type {output.dtype}"
        )
    store(resize_output(output, result.shape), result)


def _wrap(result: Any, dtype: torch.dtype) -> Any:
    """Return tensors for arrays; those computed for half precision get it back."""
    if isinstance(result, (list, tuple)):
        return tuple(_wrap(item, dtype) for item in result)
    if result is None or isinstance(result, bool):
        return result
    result = np.asarray(result)
    same = result.dtype == DTYPES[compute_dtype(dtype)]
    return from_array(result, dtype if same else _TORCH_DTYPES[result.dtype])
