"""Every operator of PyTorch's OpInfo database as a case, on its first, small sample."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from cases import Case
from torch.utils._pytree import tree_map

if TYPE_CHECKING:
    from cases import Call

GROUP = "every operator"

LEFT_OUT = {
    "tensor_split": "takes indices that must stay on the CPU",
    "as_strided.partial_views": "its sample reads beyond what a copy of the tensor holds",
}
"""Operators that cannot be called with all arguments on the device, or not by a plain copy."""


def operator_cases() -> list[Case]:
    """Return a case for each operator and variant, in float32 where it has that.

    Making the samples takes PyTorch's own test machinery, which takes seconds to import: nothing
    else in the benchmarks needs it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

    cases = {}
    for op in op_db:
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        on_cpu = bool(op.supported_dtypes("cpu")) and "jiterator" not in name  # that is CUDA's
        if on_cpu and name not in LEFT_OUT and name not in cases:
            cases[name] = Case(GROUP, name, partial(_prepare, op))
    return list(cases.values())


def _prepare(op: Any, device: torch.device) -> Call:
    dtypes = op.supported_dtypes("cpu")
    dtype = torch.float32 if torch.float32 in dtypes else min(dtypes, key=str)
    torch.manual_seed(0)
    sample = next(iter(op.sample_inputs("cpu", dtype)))

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().to(device)
        return device if str(value) == "cpu" else value

    arguments, options = tree_map(move, ((sample.input, *sample.args), sample.kwargs))
    return partial(op, *arguments, **options)
