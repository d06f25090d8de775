"""PyTorch's test machinery: importing it warns about what it could also make use of."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_methods_invocations as _database
    from torch.testing._internal import common_utils as _common_utils
    from torch.testing._internal.common_device_type import (
        OpDTypes,
        instantiate_device_type_tests,
        ops,
    )
    from torch.testing._internal.common_utils import DeterministicGuard, TestCase

__all__ = [
    "OPERATORS",
    "DeterministicGuard",
    "OpDTypes",
    "TestCase",
    "instantiate_device_type_tests",
    "ops",
]

# PyTorch walks the whole stack, with the source of every frame, after every test, to know with
# which sample it has failed. Most of the time would go there, and our failures name the sample.
_common_utils.extract_test_fn = lambda: None

# jiterator compiles CUDA code.
OPERATORS = [op for op in _database.op_db if "jiterator" not in op.name]
for _kind in ("unary", "binary", "pointwise", "reduce", "other"):
    OPERATORS += getattr(_database, f"foreach_{_kind}_op_db")
for _op in OPERATORS:
    _op.decorators = ()  # where, and how exactly, PyTorch's own tests run the operator
