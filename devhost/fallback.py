"""What happens when the device has no kernel for an operator: ``DEVHOST_FALLBACK``.

The CPU's kernel runs in its place. That keeps programs going, and hides from the author of a plugin
what is missing; so the policy can be set from outside, for every plugin, and uses are counted.
"""

from __future__ import annotations

import collections
import warnings
from typing import TYPE_CHECKING, Any, Final

from devhost import torch_compat
from devhost.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

VARIABLE: Final = "DEVHOST_FALLBACK"
POLICIES: Final = ("allow", "warn", "error")

_STATISTICS: Final = ("running_mean", "running_var")
UNDECLARED_WRITES: Final = {
    "aten::native_batch_norm": _STATISTICS,
    "aten::native_batch_norm.out": _STATISTICS,
    "aten::batch_norm_update_stats": _STATISTICS,
}
"""Arguments that the CPU's kernels write to although the operators' schemas do not say so."""

OWN_OPERATORS: Final = (
    "aten::_copy_from",
    "aten::empty.memory_format",
    "aten::empty_strided",
    "aten::resize_",
)
"""Operators that the fallback uses itself to move arguments and results."""


def policy_from(environ: Mapping[str, str]) -> str:
    """Return the policy that the environment asks for; ``"allow"`` if it asks for none.

    Raises:
        ConfigurationError: It asks for something else than ``allow``, ``warn`` or ``error``.
    """
    value = environ.get(VARIABLE, "").strip()
    if value and value not in POLICIES:
        raise ConfigurationError(
            f"{VARIABLE}={value} is not a policy: it must be {', '.join(POLICIES[:-1])} or "
            f"{POLICIES[-1]}"
        )
    return value or "allow"


class CopyingFallback:
    """Runs the CPU's kernel on copies of the arguments, for devices whose kernels are in Python.

    A native plugin has a faster one of its own. See :meth:`devhost.KernelRegistry.fallback`.
    """

    def __init__(self, device_type: str) -> None:
        self._device_type = device_type
        self._policy = "allow"
        self._uses: collections.Counter[str] = collections.Counter()
        self._warned: set[str] = set()

    def set_fallback_policy(self, policy: str) -> None:
        """Set the policy: ``"allow"``, ``"warn"`` (once per operator) or ``"error"``."""
        self._policy = policy

    def fallback_stats(self) -> dict[str, int]:
        """Return how often each operator has run on the CPU, by its qualified name."""
        return dict(sorted(self._uses.items()))

    def reset_fallback_stats(self) -> None:
        """Start counting anew."""
        self._uses.clear()

    def __call__(self, op: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
        """Run ``op`` on the CPU. What PyTorch calls.

        Raises:
            NotImplementedError: The policy is ``error``, or the CPU has no kernel either, or the
                result would be a view, which a copy cannot give, or the fallback needs the operator
                itself.
        """
        import torch
        from torch.utils._pytree import tree_map

        self._note(op)
        copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # by id: the original, its copy
        device = None

        def is_ours(value: Any) -> bool:
            return isinstance(value, torch.Tensor) and value.device.type == self._device_type

        def to_cpu(value: Any) -> Any:
            nonlocal device
            if isinstance(value, torch.device) and value.type == self._device_type:
                device = device or value
                return torch.device("cpu")
            if not is_ours(value):
                return value
            device = value.device
            if id(value) not in copies:
                copies[id(value)] = (value, value.cpu())
            return copies[id(value)][1]

        def output(value: Any) -> Any:
            # Its contents are of no interest, and its size is the CPU's to decide: PyTorch hands
            # over outputs of sizes that the CPU's kernel would warn about. An input may be the
            # output, too.
            if is_ours(value) and id(value) not in copies:
                copies[id(value)] = (value, torch.empty(0, dtype=value.dtype, device="cpu"))
            return to_cpu(value)

        def to_device(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            for original, copy in copies.values():
                if value is copy:
                    return original
            return value.to(device or self._device_type)

        outputs = {a.name for a in torch_compat.schema_of(op).arguments if a.is_out}
        cpu_args = tree_map(to_cpu, args)
        cpu_kwargs = {
            name: tree_map(output if name in outputs else to_cpu, value)
            for name, value in sorted(kwargs.items(), key=lambda item: item[0] in outputs)
        }
        with torch_compat.without_autocast():  # the CPU's is not for tensors of the device
            result = op(*cpu_args, **cpu_kwargs)
        self._write_back(op, args, kwargs, copies)
        return tree_map(to_device, result)

    def _note(self, op: torch._ops.OpOverload) -> None:
        name = op.name()
        if any(
            r.alias_info is not None and not r.alias_info.is_write
            for r in torch_compat.schema_of(op).returns
        ):
            raise NotImplementedError(
                f"The operator '{name}' returns a view, which the CPU cannot make of a copy: the "
                f"{self._device_type} device needs a kernel of its own for it."
            )
        if name in OWN_OPERATORS:
            raise NotImplementedError(
                f"The operator '{name}' has no kernel for the {self._device_type} device, and the "
                "fallback to the CPU needs it to move data: the device needs a kernel of its own "
                "for it."
            )
        if not torch_compat.has_kernel(name, "CPU"):
            raise NotImplementedError(
                f"The operator '{name}' has no kernel for the {self._device_type} device, and the "
                "CPU has none that could run in its place."
            )
        if self._policy == "error":
            raise NotImplementedError(
                f"The operator '{name}' has no kernel of its own for the {self._device_type} "
                f"device, and {VARIABLE}=error forbids running the CPU's in its place."
            )
        self._uses[name] += 1
        if self._policy == "warn" and name not in self._warned:
            self._warned.add(name)
            warnings.warn(
                f"The operator '{name}' has no kernel of its own for the {self._device_type} "
                "device and runs the CPU's in its place. This is said once per operator "
                f"({VARIABLE}=warn).",
                stacklevel=3,
            )

    @staticmethod
    def _write_back(
        op: torch._ops.OpOverload,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        copies: Mapping[int, tuple[torch.Tensor, torch.Tensor]],
    ) -> None:
        """Bring what the operator wrote to its arguments back to the device."""
        arguments = torch_compat.schema_of(op).arguments
        undeclared = UNDECLARED_WRITES.get(op.name(), ())
        values = dict(zip((a.name for a in arguments), args, strict=False)) | kwargs
        for argument in arguments:
            declared = argument.alias_info is not None and argument.alias_info.is_write
            if not declared and argument.name not in undeclared:
                continue
            value = values.get(argument.name)
            for tensor in value if isinstance(value, (list, tuple)) else [value]:
                if id(tensor) in copies:
                    original, copy = copies[id(tensor)]
                    if original.shape != copy.shape:
                        original.resize_(copy.shape)
                    original.copy_(copy)
