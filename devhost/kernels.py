"""How a plugin gets its kernels to PyTorch: native modules to load, or functions in Python."""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Any

from devhost import torch_compat
from devhost.errors import KernelRegistrationError

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
        operators: Names of the operators registered from Python, per dispatch key, in order.
    """

    def __init__(self) -> None:
        self.native_modules: list[str] = []
        self.operators: dict[str, list[str]] = {}
        # A torch.library.Library takes its registrations back when it is garbage collected.
        self._libraries: dict[str, torch.library.Library] = {}

    def load(self, module_name: str) -> ModuleType:
        """Import a native extension module, whose static initialisers register kernels.

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
        # Two lists and their common part, not a question per operator: there are thousands.
        composite = set(torch_compat.operators_with_kernel(COMPOSITE_KEY))
        suspects = composite.intersection(torch_compat.operators_with_kernel(DEVICE_KEY))
        broken = sorted(filter(_breaks_autograd, suspects))
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
        registered = self.operators.setdefault(dispatch_key, [])
        if operator in registered:
            raise KernelRegistrationError(f"{operator} already has a kernel for {dispatch_key}")
        if dispatch_key == DEVICE_KEY and _breaks_autograd(operator):
            raise KernelRegistrationError(_composite_message("the plugin", [operator]))
        self._library(namespace).impl(name, fn, dispatch_key)
        registered.append(operator)

    def discard(self) -> None:
        """Take back every Python kernel and operator registered here."""
        while self._libraries:
            torch_compat.unload(self._libraries.popitem()[1])
        self.operators.clear()

    def _library(self, namespace: str) -> torch.library.Library:
        import torch

        if namespace not in self._libraries:
            # A fragment, unlike a definition, may extend a namespace that exists.
            self._libraries[namespace] = torch.library.Library(namespace, "FRAGMENT")
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
