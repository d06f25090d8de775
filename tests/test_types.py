"""What plugins hand over is validated where they make it."""

import copy
import dataclasses
import inspect
import pickle

import pytest

from devhost import AmpPolicy, DeviceInfo, ProbeResult
from devhost.types import DeviceRng, DeviceRuntime, required_members


def test_device_info_defaults():
    info = DeviceInfo(name="example", description="An example")
    assert (info.simulated, info.priority, info.spec_version) == (False, 0, 1)
    assert (info.torch_min, info.torch_before, info.built_for_torch) == ("2.13", None, None)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", b"example"),
        ("description", None),
        ("simulated", 1),
        ("priority", True),
        ("priority", 1.5),
        ("spec_version", "1"),
        ("torch_min", (2, 13)),
        ("torch_before", 3),
        ("built_for_torch", 2.13),
    ],
)
def test_device_info_refuses_wrong_types(field, value):
    fields = {"name": "example", "description": "An example", field: value}
    with pytest.raises(TypeError, match=rf"^DeviceInfo\.{field} must be "):
        DeviceInfo(**fields)


@pytest.mark.parametrize("priority", [-1, 1_000_000_000])
def test_device_info_refuses_a_priority_out_of_range(priority):
    with pytest.raises(
        ValueError, match=f"^DeviceInfo.priority must be from 0 to .* not {priority}$"
    ):
        DeviceInfo(name="example", description="An example", priority=priority)


def test_device_info_takes_keywords_only_and_is_frozen():
    with pytest.raises(TypeError):
        DeviceInfo("example", "An example")
    info = DeviceInfo(name="example", description="")
    for change in (
        lambda: setattr(info, "name", "other"),
        lambda: setattr(info, "other", "example"),
        lambda: delattr(info, "name"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    assert info.name == "example"


@pytest.mark.parametrize(
    "value",
    [
        DeviceInfo(name="example", description="An example", torch_before="2.15"),
        ProbeResult(available=True, devices=("first",)),
        AmpPolicy(supported_dtypes=("a", "b"), default_dtype="b", promote=("aten::add.Tensor",)),
    ],
)
def test_values_are_made_of_their_fields(value):
    parameters = inspect.signature(type(value)).parameters.values()
    fields = dataclasses.fields(value)
    # A missing default is called something else in each of the two.
    assert [(p.name, "" if p.default is p.empty else p.default) for p in parameters] == [
        (f.name, "" if f.default is dataclasses.MISSING else f.default) for f in fields
    ]
    assert type(value)(**{f.name: getattr(value, f.name) for f in fields}) == value
    assert list(dataclasses.asdict(value)) == [f.name for f in fields]


def test_values_are_compared_copied_and_shown_as_those_of_dataclasses():
    result = ProbeResult(available=True, devices=("first",))
    assert result == copy.deepcopy(result) == pickle.loads(pickle.dumps(result))
    assert hash(result) == hash(copy.copy(result))
    absent = dataclasses.replace(result, available=False, reason="gone")
    assert absent != result
    assert absent != dataclasses.asdict(absent)
    assert repr(absent) == "ProbeResult(available=False, reason='gone', devices=('first',))"


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"available": 1}, TypeError, "available must be a bool, not int"),
        ({"available": True}, ValueError, "name of at least one device"),
        ({"available": True, "devices": ["a"]}, TypeError, "must be a tuple of str, not list"),
        ({"available": True, "devices": (1,)}, TypeError, "must be a tuple of str"),
        ({"available": False, "reason": " "}, ValueError, "available=False needs a reason"),
        ({"available": False, "reason": None}, TypeError, "reason must be a str"),
    ],
)
def test_probe_result_refuses(fields, error, message):
    with pytest.raises(error, match=message):
        ProbeResult(**fields)


def test_amp_policy_needs_a_supported_default():
    # Strings stand for dtypes: torch is not imported in this process.
    policy = AmpPolicy(supported_dtypes=("bfloat16",), default_dtype="bfloat16")
    assert policy.default_dtype == "bfloat16"
    with pytest.raises(ValueError, match="float16 is not one of supported_dtypes"):
        AmpPolicy(supported_dtypes=("bfloat16",), default_dtype="float16")
    with pytest.raises(TypeError, match="supported_dtypes must be a tuple"):
        AmpPolicy(supported_dtypes=["bfloat16"], default_dtype="bfloat16")


@pytest.mark.parametrize("field", ["lower_precision", "float32", "promote"])
def test_amp_policy_refuses_operators_that_are_no_names(field):
    dtypes = {"supported_dtypes": ("bfloat16",), "default_dtype": "bfloat16"}
    with pytest.raises(TypeError, match=f"{field} must be a tuple of str, not str"):
        AmpPolicy(**dtypes, **{field: "aten::mm"})
    with pytest.raises(TypeError, match=f"AmpPolicy.{field} has 3, which is no str"):
        AmpPolicy(**dtypes, **{field: ("aten::mm", 3)})


def test_amp_policy_refuses_an_operator_named_twice():
    with pytest.raises(ValueError, match="aten::mm twice, in float32 and in float32"):
        AmpPolicy(
            supported_dtypes=("bfloat16",),
            default_dtype="bfloat16",
            float32=("aten::mm", "aten::mm"),
        )


def test_required_members_are_those_of_the_protocol():
    assert required_members(DeviceRng) == ("default_generator",)
    assert required_members(DeviceRuntime) == (
        "device_count",
        "current_device",
        "set_device",
        "exchange_device",
        "synchronize",
        "init",
        "is_in_bad_fork",
        "get_device_properties",
    )
