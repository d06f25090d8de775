"""Autocast for a plugin that leaves the casts to the host: registers them from the policy's lists.

A cast is a kernel for ``AutocastPrivateUse1``, the dispatch key that comes before autograd, so that
its conversions are differentiated. It converts the operator's inputs and calls the operator again
below that key. Being Python, it adds some 10 microseconds to a call, and it converts a weight each
time it is used: PyTorch's weight cache can be reached from C++ only. A plugin with compiled kernels
registers compiled casts. Source of the semantics: ``at::autocast`` of PyTorch.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from devhost import torch_compat
from devhost.kernels import nearest_operators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import torch

    from devhost.types import AmpPolicy

    Target = Callable[[Iterable[torch.Tensor]], torch.dtype]
    """Chooses the data type for the tensors that are to be cast."""

AUTOCAST_KEY = "AutocastPrivateUse1"


def operator_problems(policy: AmpPolicy) -> Iterator[str]:
    """Yield what is wrong with the operators that a policy names, one clause each."""
    for field, operators in policy.operators().items():
        for operator in operators:
            named = f"AmpPolicy.{field} names {operator}"
            if not torch_compat.operator_exists(operator):
                yield f"{named}, and there is no such operator{nearest_operators(operator, 3)}"
            elif written := torch_compat.written_arguments(operator):
                yield (
                    f"{named}, which writes to its argument {written[0]}: a cast would have it "
                    "write to a copy"
                )
            elif torch_compat.has_kernel(operator, AUTOCAST_KEY):
                yield (
                    f"{named}, which has a kernel for {AUTOCAST_KEY} already: casts are registered "
                    "in C++ or listed, not both"
                )


def register_casts(policy: AmpPolicy, device: str) -> list[torch.library.Library]:
    """Register the casts of a policy that has no problems.

    Operators that have no cast fall through: they run as without autocast.

    Args:
        policy: The plugin's policy.
        device: Name of the device.

    Returns:
        What the registrations live in; they end when it is garbage collected.
    """
    import torch

    libraries: dict[str, torch.library.Library] = {}
    if not torch_compat.has_fallback(AUTOCAST_KEY):  # a plugin may have done it in C++
        libraries["_"] = torch.library.Library("_", "IMPL")  # "_" means every operator
        libraries["_"].fallback(torch.library.fallthrough_kernel, AUTOCAST_KEY)
    targets: dict[str, Target] = {
        "lower_precision": lambda _: torch.get_autocast_dtype(device),
        "float32": lambda _: torch.float32,
        "promote": lambda tensors: functools.reduce(
            torch.promote_types, (tensor.dtype for tensor in tensors)
        ),
    }
    for field, operators in policy.operators().items():
        for operator in operators:
            namespace, _, name = operator.partition("::")
            if namespace not in libraries:
                libraries[namespace] = torch.library.Library(namespace, "FRAGMENT")
            cast = _cast(torch_compat.operator(operator), device, targets[field])
            libraries[namespace].impl(name, cast, AUTOCAST_KEY)
    return list(libraries.values())


def _cast(operator: torch._ops.OpOverload, device: str, target: Target) -> Callable[..., Any]:
    """Return the kernel that casts the operator's inputs."""
    import torch

    def eligible(value: Any) -> bool:
        return (
            isinstance(value, torch.Tensor)
            and value.device.type == device
            and value.is_floating_point()
            and value.dtype != torch.float64
        )

    def tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
        for value in values:
            if isinstance(value, (list, tuple)):
                yield from tensors(value)
            elif eligible(value):
                yield value

    def convert(value: Any, dtype: torch.dtype) -> Any:
        if isinstance(value, (list, tuple)):
            return [convert(item, dtype) for item in value]
        return value.to(dtype) if eligible(value) else value

    def kernel(*arguments: Any, **options: Any) -> Any:
        with torch_compat.without_autocast():
            found = list(tensors((*arguments, *options.values())))
            if not found:
                return operator(*arguments, **options)
            dtype = target(found)
            return operator(
                *(convert(value, dtype) for value in arguments),
                **{name: convert(value, dtype) for name, value in options.items()},
            )

    return kernel
