"""What a device plugin hands to the host: plain data and the protocols it implements.

Nothing here imports torch: a plugin's hook module uses these names, and `devhost list` loads hook
modules in processes that never import torch.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    import torch


MAX_PRIORITY = 999_999_999


def _require(owner: object, field: str, expected: type | tuple[type, ...], meaning: str) -> None:
    value = getattr(owner, field)
    # bool is an int to Python, but never what was meant by a number here.
    wrong_bool = isinstance(value, bool) and expected is not bool
    if wrong_bool or not isinstance(value, expected):
        raise TypeError(
            f"{type(owner).__name__}.{field} must be {meaning}, not {type(value).__name__}"
        )


class _Frozen:
    """What ``frozen=True`` would give a dataclass, and its text and comparison.

    A dataclass compiles these for every class, and ``__init__`` as well, which took a tenth of what
    devhost adds to `import torch`. So that is written out below. They are dataclasses for
    ``dataclasses.replace()``, ``asdict()`` and ``fields()``.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __setattr__(self, name: str, value: object) -> None:
        # Once, by __init__.
        if name in vars(self) or name not in self.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__qualname__}({fields})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))


@dataclass(init=False, repr=False, eq=False, match_args=False)
class DeviceInfo(_Frozen):
    """Who a device plugin is. Returned by ``devhost_device``.

    Attributes:
        name: Device name as in ``torch.device(name)``, equal to the entry point's name.
        description: One line for people, shown by ``devhost list``.
        simulated: True if there is no hardware behind the device.
        priority: From 0 to 999999999; larger is preferred where several plugins of the same kind
            are available. It counts, like ``simulated``, as it is declared in the entry-point group
            ``devhost.ranking``, because devhost chooses before it imports anything.
        spec_version: Version of the hook specs that the plugin was written for.
        torch_min: Oldest supported PyTorch version, inclusive.
        torch_before: First unsupported PyTorch version, exclusive; None for no upper bound.
        built_for_torch: Version of PyTorch that the native part was compiled against. PyTorch's
            C++ ABI changes with every minor version, so major and minor must equal those of the
            running one. None if there is no native part.

    Raises:
        TypeError: A field has the wrong type.
        ValueError: The priority is out of range.
    """

    name: str
    description: str
    simulated: bool = False
    priority: int = 0
    spec_version: int = 1
    torch_min: str = "2.13"
    torch_before: str | None = None
    built_for_torch: str | None = None

    def __init__(
        self,
        *,
        name: str,
        description: str,
        simulated: bool = simulated,
        priority: int = priority,
        spec_version: int = spec_version,
        torch_min: str = torch_min,
        torch_before: str | None = torch_before,
        built_for_torch: str | None = built_for_torch,
    ) -> None:
        self.name = name
        self.description = description
        self.simulated = simulated
        self.priority = priority
        self.spec_version = spec_version
        self.torch_min = torch_min
        self.torch_before = torch_before
        self.built_for_torch = built_for_torch
        for field in ("name", "description", "torch_min"):
            _require(self, field, str, "a str")
        for field in ("torch_before", "built_for_torch"):
            _require(self, field, (str, type(None)), "a str or None")
        for field in ("priority", "spec_version"):
            _require(self, field, int, "an int")
        _require(self, "simulated", bool, "a bool")
        if not 0 <= self.priority <= MAX_PRIORITY:
            raise ValueError(
                f"DeviceInfo.priority must be from 0 to {MAX_PRIORITY}, not {self.priority}"
            )


@dataclass(init=False, repr=False, eq=False, match_args=False)
class ProbeResult(_Frozen):
    """Whether the hardware is there. Returned by ``devhost_probe``.

    Attributes:
        available: True if the device can be used in this process.
        reason: Why it is not available, one sentence. Required then, ignored otherwise.
        devices: One name per device, in index order. Required when available.

    Raises:
        TypeError: A field has the wrong type.
        ValueError: An unavailable result without a reason, or an available one without devices.
    """

    available: bool
    reason: str = ""
    devices: tuple[str, ...] = ()

    def __init__(
        self, *, available: bool, reason: str = reason, devices: tuple[str, ...] = devices
    ) -> None:
        self.available = available
        self.reason = reason
        self.devices = devices
        _require(self, "available", bool, "a bool")
        _require(self, "reason", str, "a str")
        _require(self, "devices", tuple, "a tuple of str")
        if not all(isinstance(name, str) for name in self.devices):
            raise TypeError("ProbeResult.devices must be a tuple of str")
        if self.available and not self.devices:
            raise ValueError("ProbeResult: available=True needs the name of at least one device")
        if not self.available and not self.reason.strip():
            raise ValueError("ProbeResult: available=False needs a reason")


@dataclass(init=False, repr=False, eq=False, match_args=False)
class AmpPolicy(_Frozen):
    """What autocast may do on the device. Returned by ``devhost_amp``.

    The lists name operators with their namespace and overload, for example ``"aten::mm"`` or
    ``"aten::softmax.int"``; operators of the plugin's own may be among them. From the lists the
    host registers casts, in Python. A plugin that registers casts in C++, for
    ``AutocastPrivateUse1``, leaves the lists empty. Operators without a cast run on what they are
    given.

    A cast is for floating-point tensors of the device other than float64. Source: the lists of
    ``torch.amp``, "Autocast Op Reference".

    Attributes:
        supported_dtypes: Data types that ``torch.autocast`` accepts for the device.
        default_dtype: The one used when none is given; one of ``supported_dtypes``. PyTorch keeps
            it per thread and starts each with float16: the host sets it in the thread that
            activates the device.
        lower_precision: Operators that run in autocast's data type, for speed.
        float32: Operators that run in float32, for accuracy.
        promote: Operators that run in the widest type among their inputs.

    Raises:
        TypeError: A field is not a tuple, or a list of operators has something other than a str.
        ValueError: ``default_dtype`` is not one of ``supported_dtypes``, or an operator is named
            twice.
    """

    supported_dtypes: tuple[torch.dtype, ...]
    default_dtype: torch.dtype
    lower_precision: tuple[str, ...] = ()
    float32: tuple[str, ...] = ()
    promote: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        supported_dtypes: tuple[torch.dtype, ...],
        default_dtype: torch.dtype,
        lower_precision: tuple[str, ...] = lower_precision,
        float32: tuple[str, ...] = float32,
        promote: tuple[str, ...] = promote,
    ) -> None:
        self.supported_dtypes = supported_dtypes
        self.default_dtype = default_dtype
        self.lower_precision = lower_precision
        self.float32 = float32
        self.promote = promote
        _require(self, "supported_dtypes", tuple, "a tuple of torch.dtype")
        if self.default_dtype not in self.supported_dtypes:
            raise ValueError(
                f"AmpPolicy.default_dtype {self.default_dtype} is not one of supported_dtypes"
            )
        place: dict[str, str] = {}
        for field, operators in self.operators().items():
            _require(self, field, tuple, "a tuple of str")
            for operator in operators:
                if not isinstance(operator, str):
                    raise TypeError(f"AmpPolicy.{field} has {operator!r}, which is no str")
                if operator in place:
                    raise ValueError(
                        f"AmpPolicy names {operator} twice, in {place[operator]} and in {field}"
                    )
                place[operator] = field

    def operators(self) -> dict[str, tuple[str, ...]]:
        """Return the three lists of operators by the names of their fields."""
        return {
            "lower_precision": self.lower_precision,
            "float32": self.float32,
            "promote": self.promote,
        }


class DeviceProperties(Protocol):
    """Properties of one device; a plugin adds what else it has. Compare torch.cuda's.

    Attributes:
        name: Name of the device, for people.
        total_memory: Size of its memory in bytes.
    """

    @property
    def name(self) -> str:
        """Name of the device."""

    @property
    def total_memory(self) -> int:
        """Size of the device's memory in bytes."""


class DeviceRuntime(Protocol):
    """The device's runtime. Returned by ``devhost_runtime``, and bound into ``torch.<name>``.

    Where the host has nothing to add, it binds these functions into the module as they are:
    ``torch.<name>.current_device`` is the plugin's own function, native or not. Indices that the
    host passes on are valid, from 0 to ``device_count() - 1``.

    A runtime may also have the functions ``can_access_peer(index, peer) -> bool``, which tells
    whether kernels of one device can use another's memory, and ``set_memory_fraction(fraction,
    index) -> None``, which limits what the allocator takes of a device's memory; without them the
    functions of ``torch.<name>`` that need them raise NotImplementedError. And it may have an
    attribute ``module_members``, a mapping of str to object: further names that are put into
    ``torch.<name>`` as they are. They win over what the host derives.
    """

    def device_count(self) -> int:
        """Return the number of devices, without initialising any."""

    def current_device(self) -> int:
        """Return the index of this thread's current device."""

    def set_device(self, index: int) -> None:
        """Make ``index`` this thread's current device."""

    def exchange_device(self, index: int) -> int:
        """Make ``index`` this thread's current device and return the previous one."""

    def synchronize(self, index: int) -> None:
        """Wait until all work on all streams of device ``index`` is done."""

    def init(self) -> None:
        """Start the runtime. Called once, before the first use of the device.

        Raises:
            Exception: The runtime cannot start; the next use of the device tries again.
        """

    def is_in_bad_fork(self) -> bool:
        """Return True in a child process that was forked after the runtime had started."""

    def get_device_properties(self, index: int) -> DeviceProperties:
        """Return the properties of device ``index``."""


class DeviceRng(Protocol):
    """The device's random number generators. Returned by ``devhost_rng``.

    Seeding, state and everything else of ``torch.<name>``'s random functions is derived from the
    methods of ``torch.Generator``.
    """

    def default_generator(self, index: int) -> torch.Generator:
        """Return the generator that operators on device ``index`` use when none is given."""


class FallbackControl(Protocol):
    """A plugin's own fallback: given to :meth:`devhost.KernelRegistry.fallback`.

    What counts as fallback is every operator that runs without a kernel written or generated for
    the device. A native plugin's module can be the control, if it has these functions.
    """

    def set_fallback_policy(self, policy: str) -> None:
        """Set the policy: ``"allow"``, ``"warn"`` (once per operator) or ``"error"``."""

    def fallback_stats(self) -> dict[str, int]:
        """Return how often each operator has fallen back, by its qualified name."""

    def reset_fallback_stats(self) -> None:
        """Start counting anew."""


class Candidate(Protocol):
    """An installed device plugin as ``devhost_select`` sees it. Nothing of it has been imported.

    Attributes:
        name: Device name.
        distribution: Name of the distribution that brings it.
        version: Version of that distribution.
    """

    @property
    def name(self) -> str:
        """Device name."""

    @property
    def distribution(self) -> str:
        """Name of the distribution."""

    @property
    def version(self) -> str:
        """Version of the distribution."""


def required_members(protocol: type) -> tuple[str, ...]:
    """Return the names that an implementation of ``protocol`` must have, in its order."""
    return tuple(
        name
        for name, value in vars(protocol).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    )
