"""Everything that depends on the version of PyTorch. Written against 2.13.

PyTorch's private names are used here and nowhere else in devhost, so that one file has to be read
when a new PyTorch release comes out. torch is imported inside the functions: most of devhost runs
while `import torch` is still on its way, or without torch.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import warnings
from typing import TYPE_CHECKING, Any, cast

from devhost.discovery import owner_of

if TYPE_CHECKING:
    import enum
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from types import ModuleType
    from typing import Protocol

    import torch

    from devhost.types import DeviceInfo

    class _Comparable(Protocol):
        @property
        def release(self) -> tuple[int, ...]: ...
        def __lt__(self, other: Any, /) -> bool: ...
        def __ge__(self, other: Any, /) -> bool: ...


UNUSED_SLOT = "privateuseone"
"""Name of PyTorch's out-of-tree device until somebody renames it."""

# fmt: off
IN_TREE_DEVICES = frozenset({
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia",
    "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
})
# fmt: on
"""Device types that torch.device knows by itself in the version below."""

IN_TREE_DEVICES_OF = "2.13."
"""The PyTorch whose devices those are. Another one is asked for more, which takes an exception."""

AUTOLOAD_VARIABLE = "TORCH_DEVICE_BACKEND_AUTOLOAD"

LOADER_PREFIXES = ("cpu", "cuda", "hpu", "meta", "mps", "mtia", "xpu")
"""Devices with a loader of their own in torch.load, which has matched locations by prefix.

A storage saved on device "cudacustom" was handed to CUDA's loader (pytorch issue 165455), and
"mps..." still is to that of MPS in 2.13.
"""


_kept_for_torch: list[object] = []  # what PyTorch's C++ code calls without keeping it alive


def autoload_is_enabled(environ: Mapping[str, str]) -> bool:
    """Return whether `import torch` calls the entry points of the group ``torch.backends``."""
    return environ.get(AUTOLOAD_VARIABLE, "1") == "1"  # for exactly this value


def slot_name() -> str:
    """Return the name that PyTorch's out-of-tree device has now."""
    import torch

    return torch._C._get_privateuse1_backend_name()


def slot_holder() -> str:
    """Return who has taken the slot: its name, and file and distribution as far as is known."""
    import torch

    name = slot_name()
    module: Any = getattr(torch, name, None)
    if module is None:
        return f"'{name}', which has registered no device module"
    # A device module may be a module, or any object: then its class tells where it comes from.
    if getattr(module, "__file__", None) is None:
        module = sys.modules.get(type(module).__module__)
    file = getattr(module, "__file__", None)
    if file is None:
        return f"'{name}', whose device module comes from no file"
    owner = owner_of(module.__name__)
    return f"'{name}' ({file}, of {owner})" if owner else f"'{name}' ({file})"


def call_after_backends(function: Callable[[], None]) -> None:
    """Call ``function`` once torch has called all entry points of the group ``torch.backends``.

    To be called by one of them, in `import torch`. What torch does next after all of them is to set
    up its logging: it waits with that so that backends can add the names of their logs. There the
    function is put in front, once.

    Raises:
        BaseException: From `import torch`, whatever ``function`` raises.
    """
    logging: Any = importlib.import_module("torch._logging")
    set_up_logging = logging._init_logs

    def first_function(*arguments: Any) -> None:
        logging._init_logs = set_up_logging
        function()
        set_up_logging(*arguments)

    logging._init_logs = first_function


def slot_is_free_for(name: str) -> bool:
    """Return whether a device called ``name`` can still get the slot.

    A slot that has that name already, and nothing else, is as good as an unused one: renaming it to
    the name it has changes nothing.
    """
    import torch

    if slot_name() == name:
        return name not in vars(torch) and not hasattr(torch.Tensor, f"is_{name}")
    return slot_name() == UNUSED_SLOT


def take_slot(name: str, module: ModuleType) -> None:
    """Give PyTorch's out-of-tree device its name, module and methods. Cannot be undone.

    Args:
        name: A name that has passed ``checks.validate_name``.
        module: Becomes ``torch.<name>``.
    """
    import torch
    from torch.utils.backend_registration import (
        generate_methods_for_privateuse1_backend,
        rename_privateuse1_backend,
    )

    rename_privateuse1_backend(name)
    torch._register_device_module(name, module)
    generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    _tell_dlpack_device()
    _explain_unshared_storages(name)


def _tell_dlpack_device() -> None:
    """Make Tensor.__dlpack_device__ know the out-of-tree device.

    It asks for a device type "privateuse1", which no device has: the unused slot is called
    "privateuseone", and a used one has the plugin's name. Everything else of DLPack works.
    """
    import torch
    from torch.utils.dlpack import DLDeviceType

    original = torch.Tensor.__dlpack_device__

    @functools.wraps(original)
    def dlpack_device(self: torch.Tensor) -> tuple[enum.IntEnum, int]:
        if type(self) is torch.Tensor and self.device.type == slot_name():
            return DLDeviceType.kDLExtDev, self.get_device()
        return original(self)

    torch.Tensor.__dlpack_device__ = dlpack_device  # type: ignore[method-assign]


def _explain_unshared_storages(name: str) -> None:
    """Make sending a tensor of the device to another process fail with an explanation.

    PyTorch shares the memory of CPU and CUDA tensors and takes any other for a CPU tensor. A plugin
    that can share memory registers its own reduction for torch.UntypedStorage.
    """
    from multiprocessing.reduction import ForkingPickler

    import torch
    from torch.multiprocessing.reductions import reduce_storage

    def reduce(storage: torch.UntypedStorage) -> Any:
        if storage.device.type == name:
            raise RuntimeError(
                f"a tensor on {storage.device} cannot be sent to another process, because {name} "
                "does not share memory between processes: send tensor.cpu(), and move it to the "
                "device there"
            )
        return reduce_storage(storage)

    ForkingPickler.register(torch.UntypedStorage, reduce)


def register_absent_device() -> None:
    """Tell PyTorch that the out-of-tree device has no hardware, so that it passes it over.

    Without hooks ``torch.get_device_module()``, which is about the current accelerator, fails on
    such a machine, and without an allocator ``torch.accelerator.empty_cache()`` ends in an internal
    error of PyTorch. No device guard is registered: with one, the first backward() would start a
    thread for the device, and PyTorch refuses backward() in a process that is forked after that.
    Hence ``torch.Generator``, ``torch.Event`` and ``torch.Stream`` of such a device raise
    PyTorch's own RuntimeError: they ask nothing else that could be answered here.
    """
    import torch

    _register_hooks(available=False)
    torch._C._accelerator_isAllocatorInitialized = lambda: False


def _register_hooks(*, available: bool) -> None:
    """Answer PyTorch's questions about an out-of-tree device that has no hooks in C++."""
    import torch

    class Hooks(torch._C._acc.PrivateUse1Hooks):
        def is_built(self) -> bool:
            return True

        def is_available(self) -> bool:
            return available

        def has_primary_context(self, device_index: int) -> bool:
            return available

    hooks = Hooks()
    torch._C._acc.register_python_privateuseone_hook(hooks)
    _kept_for_torch.append(hooks)


def explain_missing_devices(explain: Callable[[str], str]) -> None:
    """Make torch.<name>, where there is no such attribute, say why the device is not there.

    It stays an AttributeError, so that hasattr() and getattr() answer as before. The same cannot be
    done for ``device="<name>"``, which PyTorch parses in C++.

    Args:
        explain: Called with the name of a missing attribute; returns a sentence, or nothing if the
            name means no device.
    """
    import torch

    original = torch.__getattr__
    if hasattr(original, "__wrapped__"):  # by an earlier attempt
        return

    deprecated: dict[str, Callable[[], bool]] = getattr(torch, "_deprecated_attrs", {})

    @functools.wraps(original)
    def getattribute(name: str) -> Any:
        instead = deprecated.get(name)
        if instead is not None:
            # As the original does, which would take this function for the caller that is to be
            # warned: PyTorch looks these names up itself, and ignores the warning by its origin.
            place = f"{instead.__module__}.{instead.__name__}()"
            warnings.warn(f"'{name}' is deprecated, please use '{place}'", stacklevel=2)
            return instead()
        try:
            return original(name)
        except AttributeError as error:
            explanation = explain(name)
            if not explanation:
                raise
            raise AttributeError(f"{error}: {explanation}") from None

    torch.__getattr__ = getattribute  # type: ignore[method-assign]


def default_dtype() -> torch.dtype:
    """Return the dtype of floating-point tensors for which none is given."""
    import torch

    return torch.get_default_dtype()


def set_default_dtype(dtype: torch.dtype) -> None:
    """Set what default_dtype() returns."""
    import torch

    torch.set_default_dtype(dtype)


def default_device() -> torch.device | None:
    """Return what torch.set_default_device() was given in this thread; None if nothing."""
    import torch

    # torch.get_default_device() makes a tensor to find out, and does not tell nothing from the CPU.
    context: Any = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


def set_default_device(device: torch.device | None) -> None:
    """Set what default_device() returns."""
    import torch

    torch.set_default_device(device)


def register_python_device() -> None:
    """Give PyTorch's C++ code hooks, a guard and storages for a device with Python kernels only.

    Once per process: an activation that failed later may be repeated.
    """
    import torch

    if _kept_for_torch:
        return

    acc = torch._C._acc

    class Guard(acc.DeviceGuard):
        def type_(self) -> Any:
            return torch._C._autograd.DeviceType.PrivateUse1

    _register_hooks(available=True)
    guard = Guard()
    acc.register_python_privateuseone_device_guard(guard)
    _kept_for_torch.append(guard)
    _make_storages_without_allocator()


def to_copy_without_pinned_memory(tensor: torch.Tensor, **options: Any) -> torch.Tensor:
    """Run PyTorch's own kernel of ``aten::_to_copy``, which all devices share, without pinning."""
    import torch

    options.pop("non_blocking", None)
    key = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    copied: torch.Tensor = torch.ops.aten._to_copy.default.redispatch(key, tensor, **options)
    return copied


def _make_storages_without_allocator() -> None:
    """Let torch.UntypedStorage make storages of a device that has no allocator in C++.

    PyTorch 2.13 asks for the device's allocator, which cannot be registered from Python, and
    crashes with a segmentation fault. copy.deepcopy and torch.load make storages so.
    """
    import torch

    original: Any = torch.UntypedStorage.__new__

    def new(cls: type, *arguments: Any, device: Any = None, **options: Any) -> Any:
        if device is None or torch.device(device).type != slot_name():
            return original(cls, *arguments, device=device, **options)
        on_cpu = original(cls, *arguments, device="cpu", **options)  # checks the arguments as well
        size = on_cpu.nbytes()
        storage = torch.empty(size, dtype=torch.uint8, device=device).untyped_storage()
        if storage.nbytes() != size:
            raise NotImplementedError(
                f"device {slot_name()} has no storages: its tensors keep their data elsewhere, "
                "where torch.UntypedStorage cannot make or copy any"
            )
        is_size = not arguments or isinstance(arguments[0], int)
        return storage if is_size else storage.copy_(on_cpu)

    torch.UntypedStorage.__new__ = new  # type: ignore[method-assign]


def name_collisions(name: str) -> Iterator[str]:
    """Yield what PyTorch already has under ``name``, one clause each."""
    import torch

    is_listed = torch.__version__.startswith(IN_TREE_DEVICES_OF)
    if not is_listed and name not in IN_TREE_DEVICES and slot_name() != name and _parses(name):
        yield f"'{name}' is one of PyTorch's own device types"
    # A submodule that nobody has imported yet would be hidden as well; looking for its file does
    # not import it, asking torch for the attribute would.
    if (
        name in vars(torch)
        or importlib.util.find_spec(f"torch.{name}") is not None
        or _lazy_attribute(torch, name)
    ):
        yield f"torch.{name} exists already"
    classes = (
        torch.Tensor,
        torch.nn.Module,
        torch.UntypedStorage,
        torch.TypedStorage,
        torch.nn.utils.rnn.PackedSequence,
    )
    for cls in classes:
        for attribute in (name, f"is_{name}"):
            if hasattr(cls, attribute):
                yield f"{cls.__module__}.{cls.__qualname__}.{attribute} exists already"


def _parses(name: str) -> bool:
    import torch

    try:
        torch.device(name)
    except RuntimeError:
        return False
    return True


def _lazy_attribute(module: ModuleType, name: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated attributes warn when they are looked up
        return hasattr(module, name)


def torch_version() -> tuple[str, Callable[[str], _Comparable]]:
    """Return the running PyTorch's version and the class that PyTorch compares versions with."""
    import torch
    from torch._vendor.packaging.version import Version

    return str(torch.__version__), Version


def version_problems(
    info: DeviceInfo, running: str, parse: Callable[[str], _Comparable]
) -> Iterator[str]:
    """Yield why a plugin does not fit a version of PyTorch, one clause each.

    Args:
        info: What the plugin says about itself.
        running: The version of PyTorch.
        parse: ``Version`` of PyTorch's copy of packaging, or of packaging itself where torch is
            not imported.
    """
    have = parse(running)
    bounds: dict[str, _Comparable] = {}
    for field in ("torch_min", "torch_before", "built_for_torch"):
        text = getattr(info, field)
        if text is None:
            continue
        try:
            bounds[field] = parse(text)
        except ValueError:  # InvalidVersion is one
            yield f"DeviceInfo.{field} {text!r} is not a version"
    if "torch_min" in bounds and have < bounds["torch_min"]:
        yield f"it needs torch {info.torch_min} or newer, and this is torch {running}"
    if "torch_before" in bounds and have >= bounds["torch_before"]:
        yield f"it supports torch before {info.torch_before}, and this is torch {running}"
    built = bounds.get("built_for_torch")
    if built is not None and built.release[:2] != have.release[:2]:
        yield (
            f"its native part was built for torch {info.built_for_torch}, and this is torch "
            f"{running}: the C++ ABI differs between minor versions, so install the build for "
            f"this torch, or the torch it was built for"
        )


def set_autocast_dtype(name: str, dtype: torch.dtype) -> None:
    """Set the data type that ``torch.autocast(name)`` uses when none is given."""
    import torch

    torch.set_autocast_dtype(name, dtype)


class SupportedDtypes(list["torch.dtype"]):
    """The data types that autocast accepts; completes PyTorch's warning about any other.

    Asked for another type, PyTorch 2.13 warns that "the target dtype is not supported" and lists
    those that are, without saying which was the target (pytorch issue 165221). It looks whether the
    type is in this list, then writes the list down; so a list that was asked in vain adds the type
    to what is written next.
    """

    _missed: torch.dtype | None = None

    def __contains__(self, dtype: object) -> bool:
        found = super().__contains__(dtype)
        self._missed = None if found else cast("torch.dtype", dtype)
        return found

    def __iter__(self) -> Iterator[Any]:
        missed, self._missed = self._missed, None
        names = list(super().__iter__())
        if missed is None or not names:
            return iter(names)
        return iter([*names[:-1], f"{names[-1]} (and not {missed}, which was asked for)"])


def default_stream(index: int) -> torch.Stream:
    """Return the default stream of device ``index`` of the out-of-tree device."""
    import torch

    device_type: Any = torch._C._autograd.DeviceType.PrivateUse1
    # Every backend's default stream has the id 0: c10::Stream::DEFAULT.
    return torch.Stream(stream_id=0, device_index=index, device_type=int(device_type))


def has_kernel(operator: str, dispatch_key: str) -> bool:
    """Return whether ``operator`` ("aten::add.Tensor") has a kernel for exactly that key."""
    import torch

    return torch._C._dispatch_has_kernel_for_dispatch_key(operator, dispatch_key)


def schema_of(operator: torch._ops.OpOverload) -> torch._C.FunctionSchema:
    """Return an operator's schema."""
    return operator._schema


def has_fallback(dispatch_key: str) -> bool:
    """Return whether there is a kernel for that key that all operators share."""
    import torch

    key = torch._C._dispatch_key_parse(dispatch_key)
    return torch._C._dispatch_has_backend_fallback(key)


def operators_with_kernel(dispatch_key: str) -> list[str]:
    """Return the names of all operators that have a kernel for exactly that key."""
    import torch

    return torch._C._dispatch_get_registrations_for_dispatch_key(dispatch_key)


def operator(name: str) -> torch._ops.OpOverload:
    """Return the operator with that qualified name, which must exist."""
    import torch

    namespace, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), base)
    found: torch._ops.OpOverload = getattr(packet, overload or "default")
    return found


def written_arguments(operator: str) -> list[str]:
    """Return the names of the arguments that an operator writes to, or returns as outputs."""
    import torch

    name, _, overload = operator.partition(".")
    schema = torch._C._get_schema(name, overload)
    return [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]


def without_autocast() -> AbstractContextManager[None]:
    """Return a context in which autocast casts nothing on the out-of-tree device or the CPU."""
    import torch

    device, cpu = (
        torch._C.DispatchKeySet(torch._C._dispatch_key_parse(key))
        for key in ("AutocastPrivateUse1", "AutocastCPU")
    )
    guard: AbstractContextManager[None] = torch._C._ExcludeDispatchKeyGuard(device | cpu)
    return guard


def operator_exists(operator: str) -> bool:
    """Return whether an operator with that qualified name is defined."""
    import torch

    return torch._C._dispatch_has_kernel(operator)


def all_operators() -> list[str]:
    """Return the qualified names of all defined operators."""
    import torch

    return torch._C._dispatch_get_all_op_names()


def unload(library: torch.library.Library) -> None:
    """Take back everything that was registered through ``library``."""
    library._destroy()


def is_missing_device_allocator(error: RuntimeError) -> bool:
    """Return whether ``error`` means that the device's allocator keeps no statistics.

    PyTorch reports an allocator that is no c10::DeviceAllocator as an internal error of its own.
    """
    return "is not a DeviceAllocator" in str(error)
