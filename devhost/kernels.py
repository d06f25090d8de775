"""How a plugin gets its kernels to PyTorch: native modules to load, or functions in Python."""

from __future__ import annotations

import difflib
import importlib
import os
import warnings
from typing import TYPE_CHECKING, Any

from devhost import torch_compat
from devhost.errors import KernelRegistrationError
from devhost.fallback import CopyingFallback, policy_from
from devhost.types import FallbackControl, required_members

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import torch

DEVICE_KEY = "PrivateUse1"
"""Dispatch key of the out-of-tree device, whatever its name."""

COMPOSITE_KEY = "CompositeImplicitAutograd"
AUTOGRAD_KEY = "AutogradPrivateUse1"


class KernelRegistry:
    """Loads native kernels and registers Python ones. Given to ``devhost_kernels``.

    Registrations made here last as long as the process. If activation fails before the device is
    renamed, the Python ones are taken back; native code cannot be unloaded.

    Attributes:
        native_modules: Names of the loaded native modules, in order.
        fallback_control: What fallback() was given or made; None if it was not called.
    """

    def __init__(self, device_type: str) -> None:
        self._device_type = device_type
        self.fallback_control: FallbackControl | None = None
        self.native_modules: list[str] = []
        self._functions: dict[tuple[str, str], Callable[..., Any]] = {}  # by operator and key
        # A torch.library.Library takes its registrations back when it is garbage collected.
        self._libraries: dict[str, torch.library.Library] = {}

    @property
    def operators(self) -> dict[str, list[str]]:
        """Names of the operators registered from Python, per dispatch key, in order."""
        names: dict[str, list[str]] = {}
        for operator, key in self._functions:
            names.setdefault(key, []).append(operator)
        return names

    def load(self, module_name: str) -> ModuleType:
        """Import a native extension module, whose static initialisers register kernels.

        Kernels for tensors of the device are not needed before its first use: hundreds of them, or
        a fallback, cost `import torch` milliseconds. A module that registers them as late as in its
        runtime's ``init`` looks by itself that it registers none that load() would refuse.

        Args:
            module_name: Full name, for example ``"devhost_openreg._C"``.

        Returns:
            The module.

        Raises:
            ImportError: It cannot be imported; undefined symbols show up here.
            KernelRegistrationError: It registers a kernel that would break autograd, see impl().
        """
        module = importlib.import_module(module_name)
        self.native_modules.append(module_name)
        broken = sorted(filter(_breaks_autograd, torch_compat.operators_with_kernel(DEVICE_KEY)))
        if broken:
            raise KernelRegistrationError(_composite_message(module_name, broken))
        return module

    def define(self, schema: str, alias_analysis: str = "") -> str:
        """Define an operator of the plugin's own, as ``torch.library.Library.define`` does.

        Args:
            schema: Schema with its namespace, for example ``"example::twice(Tensor x) -> Tensor"``.
            alias_analysis: ``""`` to derive aliasing from the schema, or ``"CONSERVATIVE"``.

        Returns:
            The operator's qualified name, ``"example::twice"``.

        Raises:
            KernelRegistrationError: The schema has no namespace.
            RuntimeError: PyTorch cannot parse the schema, or the operator exists already.
        """
        namespace, rest = _split(schema)
        name = self._library(namespace).define(rest, alias_analysis)
        return f"{namespace}::{name}"

    def impl(
        self,
        op_name: str | torch._ops.OpOverload,
        fn: Callable[..., Any],
        dispatch_key: str = DEVICE_KEY,
    ) -> None:
        """Register a kernel in Python, as ``torch.library.Library.impl`` does.

        Args:
            op_name: Qualified name with overload, ``"aten::add.Tensor"``, or an ``OpOverload``.
            fn: The kernel.
            dispatch_key: Key to register it for.

        Raises:
            KernelRegistrationError: There is no such operator, or this registry has registered it
                for that key before, or it is composed of other operators
                (CompositeImplicitAutograd) and the key is the device's: PyTorch would then look
                for its derivative under AutogradPrivateUse1, find none, and fail as soon as an
                input requires gradients. Register a kernel for AutogradPrivateUse1 first, or
                kernels for the operators that it is composed of.
        """
        operator = op_name if isinstance(op_name, str) else op_name.name()
        namespace, name = _split(operator)
        if not torch_compat.operator_exists(operator):
            raise KernelRegistrationError(
                f"there is no operator {operator}{nearest_operators(operator, 1)}"
            )
        if (operator, dispatch_key) in self._functions:
            raise KernelRegistrationError(
                f"{operator} has two kernels for {dispatch_key}: "
                f"{_owner(self._functions[operator, dispatch_key])} and {_owner(fn)}. Leave one out"
            )
        if dispatch_key == DEVICE_KEY and _breaks_autograd(operator):
            raise KernelRegistrationError(_composite_message("the plugin", [operator]))
        with warnings.catch_warnings():
            # A Python kernel may take the place of a compiled one: that is what overriding is for.
            warnings.filterwarnings("ignore", "Warning only once for all operators", UserWarning)
            self._library(namespace).impl(name, fn, dispatch_key)
        self._functions[operator, dispatch_key] = fn

    def fallback(self, control: FallbackControl | None = None) -> None:
        """Let the CPU stand in for missing kernels, as far as ``DEVHOST_FALLBACK`` allows.

        Args:
            control: The plugin's own fallback, which is registered with PyTorch already. None lets
                the host register one: it copies the arguments to the CPU and the results back,
                through the device's ``_copy_from``.

        Raises:
            ConfigurationError: ``DEVHOST_FALLBACK`` has a value that means nothing.
            KernelRegistrationError: ``control`` lacks a function of FallbackControl.
        """
        policy = policy_from(os.environ)
        if control is None:
            control = CopyingFallback(self._device_type)
            self._library("_").fallback(control, DEVICE_KEY)
        missing = [m for m in required_members(FallbackControl) if not hasattr(control, m)]
        if missing:
            raise KernelRegistrationError(
                f"a fallback control must have {', '.join(required_members(FallbackControl))}; "
                f"this one lacks {', '.join(missing)}"
            )
        control.set_fallback_policy(policy)
        self.fallback_control = control

    def register_python_device(self) -> None:
        """Tell PyTorch's C++ code that the device is there, for a plugin without any of its own.

        It gives PyTorch what a native plugin registers in C++: hooks, a guard for one device with
        one stream, and a way to make a ``torch.UntypedStorage`` of the device, which PyTorch needs
        to copy and to load tensors. Such a storage is that of a new tensor of uint8. Copies to the
        CPU with ``non_blocking=True`` wait, and go to ordinary memory: PyTorch would take pinned
        memory for them, of which a device in Python has none.

        The plugin's ``aten::_copy_from`` gets lazily conjugated and negated tensors as they are
        (``Tensor.is_conj``, ``Tensor.is_neg``), and copies the values that they stand for.
        """
        import torch

        torch_compat.register_python_device()
        self.impl("aten::_to_copy", torch_compat.to_copy_without_pinned_memory)
        for key in ("Conjugate", "Negative"):
            # PyTorch resolves a lazy conjugate by a copy, and would resolve that copy's source
            # first, by a copy, without end.
            self.impl("aten::_copy_from", torch.library.fallthrough_kernel, key)

    def allow_moving_parameters(self) -> None:
        """Let ``module.to(device)`` keep its parameters, as for PyTorch's own devices.

        They get new bytes instead of being replaced, so that an optimizer made before and weights
        shared between layers stay valid; ``parameter.data = tensor`` works across devices too.
        PyTorch asks an operator whether it may do so, and the one it has only knows the devices in
        its own tree. The host calls this for every plugin with native kernels. A device in Python
        may call it if its data belong to the storage; data kept beside the tensor would be lost.
        """
        for key in (AUTOGRAD_KEY, DEVICE_KEY):
            self.impl("aten::_has_compatible_shallow_copy_type", _are_both_strided, key)

    def discard(self) -> None:
        """Take back every Python kernel and operator registered here."""
        while self._libraries:
            torch_compat.unload(self._libraries.popitem()[1])
        self._functions.clear()

    def _library(self, namespace: str) -> torch.library.Library:
        import torch

        if namespace not in self._libraries:
            # A fragment, unlike a definition, may extend a namespace that exists; "_" means all.
            kind = "IMPL" if namespace == "_" else "FRAGMENT"
            self._libraries[namespace] = torch.library.Library(namespace, kind)
        return self._libraries[namespace]


def nearest_operators(name: str, count: int) -> str:
    """Return what ``name`` may have meant, as "; did you mean ...?", or nothing if unlike any.

    Args:
        name: A name that no operator has. If it only lacks the overload, those are what is meant.
        count: Largest number of names to give.
    """
    known = torch_compat.all_operators()
    overloads = sorted(operator for operator in known if operator.startswith(f"{name}."))
    near = overloads or difflib.get_close_matches(name, known, n=count)
    return f"; did you mean {' or '.join(near[:count])}?" if near else ""


def _split(qualified: str) -> tuple[str, str]:
    namespace, separator, rest = qualified.partition("::")
    if not (separator and namespace and rest):
        raise KernelRegistrationError(
            f"{qualified!r} has no namespace: write it as 'namespace::name', for PyTorch's own "
            "operators 'aten::name'"
        )
    return namespace, rest


def _are_both_strided(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    import torch

    return tensor.layout == other.layout == torch.strided


def _owner(kernel: Callable[..., Any]) -> str:
    """Say which function a kernel is and where it stands."""
    code = getattr(kernel, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    module = getattr(kernel, "__module__", None) or "?"
    return f"{module}.{getattr(kernel, '__qualname__', repr(kernel))}{place}"


def _breaks_autograd(operator: str) -> bool:
    if not torch_compat.has_kernel(operator, COMPOSITE_KEY):
        return False
    # PyTorch gives a few composite operators an autograd kernel for all devices that have a kernel
    # of their own, because the CPU is one of them.
    return not any(torch_compat.has_kernel(operator, key) for key in ("Autograd", AUTOGRAD_KEY))


def _composite_message(source: str, operators: list[str]) -> str:
    return (
        f"{source} registers {', '.join(operators)} for {DEVICE_KEY}, which PyTorch composes of "
        f"other operators ({COMPOSITE_KEY}): with such a kernel they lose their derivative, and "
        f"fail for inputs that require gradients. Leave them out, and register the operators they "
        f"are composed of; or register them for {AUTOGRAD_KEY} as well"
    )
