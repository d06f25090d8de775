"""The smoke test: does an active device do the few things that every program needs?

Runs in a child process, after activation. The numbers are small integers, which are exact in every
floating-point type, so that results are compared for equality.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from devhost import torch_compat
from devhost.amp import AUTOCAST_KEY
from devhost.errors import exception_text, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch

    from devhost.activation import Supplied
    from devhost.cli.processes import Send
    from devhost.types import AmpPolicy

    Test = Callable[[torch.device], None]

SEED = 7


class _Wrong(Exception):  # noqa: N818 - no error of the program: a finding
    """The device has given a wrong answer."""


class _Case(NamedTuple):
    name: str
    doing: str
    test: Test | None  # None if the plugin does not claim to have it
    hook: str = ""  # by which it would


def run(device_type: str, supplied: Supplied, send: Send) -> list[dict[str, str]]:
    """Test device 0.

    Returns:
        For each test ``name``, ``outcome`` and ``text``: "passed"; "skipped", the plugin does not
        claim to have it; "missing", an operator has no kernel; or "failed". The text says why.
    """
    import torch

    device = torch.device(device_type, 0)
    results = []
    for case in _cases(supplied):
        if case.test is None:
            outcome, text = "skipped", f"it does not implement {case.hook}"
        else:
            send({"stage": case.doing})
            outcome, text = _outcome(case.test, device, supplied)
        results.append({"name": case.name, "outcome": outcome, "text": text})
    return results


def _cases(supplied: Supplied) -> Iterator[_Case]:
    yield _Case("round trip", "copying a tensor to the device and back", _round_trip)
    yield _Case("add", "adding two tensors on the device", _add)
    random = None if supplied.rng is None else _random
    yield _Case("random numbers", "drawing random numbers on the device", random, "devhost_rng")
    cast = None if supplied.amp is None else functools.partial(_autocast, supplied.amp)
    yield _Case("autocast", "multiplying matrices under autocast", cast, "devhost_amp")


def _outcome(test: Test, device: torch.device, supplied: Supplied) -> tuple[str, str]:
    try:
        test(device)
        supplied.runtime.synchronize(0)  # where errors of queued work show
    except NotImplementedError as error:
        return "missing", _first_sentence(error)
    except _Wrong as error:
        return "failed", one_line(str(error))
    except Exception as error:
        return "failed", exception_text(error)
    return "passed", ""


def _round_trip(device: torch.device) -> None:
    import torch

    source = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    there = source.to(device)
    if there.device != device:
        raise _Wrong(f"a tensor moved to {device} is on {there.device}")
    _compare("a tensor copied to the device and back", there.cpu(), source)


def _add(device: torch.device) -> None:
    import torch

    left = torch.arange(8, dtype=torch.float32)
    right = torch.full((8,), 3.0)
    total = left.to(device) + right.to(device)
    _compare("the sum of two tensors", total.cpu(), left + right)


def _random(device: torch.device) -> None:
    import torch

    torch.manual_seed(SEED)
    first = torch.rand(64, device=device).cpu()
    second = torch.rand(64, device=device).cpu()
    torch.manual_seed(SEED)
    again = torch.rand(64, device=device).cpu()
    if not torch.equal(first, again):
        raise _Wrong("torch.manual_seed() with the same seed gives other random numbers")
    if torch.equal(first, second):
        raise _Wrong("torch.rand() gives the same numbers each time")
    if not ((first >= 0) & (first < 1)).all():
        raise _Wrong("torch.rand() gives numbers outside [0, 1)")


def _autocast(policy: AmpPolicy, device: torch.device) -> None:
    import torch

    matrix = torch.arange(16, dtype=torch.float32).reshape(4, 4).remainder(5)
    on_device = matrix.to(device)
    with torch.autocast(device.type):
        product = on_device.mm(on_device)
    expected = [policy.default_dtype]
    if "aten::mm" not in policy.lower_precision:
        # The plugin's C++ decides; without a cast of its own the operator keeps its inputs' type.
        if not torch_compat.has_kernel("aten::mm", AUTOCAST_KEY):
            expected.clear()
        expected.append(torch.float32)
    if product.dtype not in expected:
        wanted = " or ".join(map(str, expected))
        raise _Wrong(f"mm of float32 under autocast gives {product.dtype}, expected {wanted}")
    _compare("mm under autocast", product.cpu().float(), matrix.mm(matrix))


def _compare(what: str, found: torch.Tensor, expected: torch.Tensor) -> None:
    import torch

    if found.dtype != expected.dtype or not torch.equal(found, expected):
        raise _Wrong(f"{what} is {_shown(found)}, expected {_shown(expected)}")


def _shown(tensor: torch.Tensor) -> str:
    return f"{tensor.flatten().tolist()} ({tensor.dtype})"


def _first_sentence(error: NotImplementedError) -> str:
    # PyTorch lists every kernel of every backend after it.
    return exception_text(error).partition(". ")[0]
