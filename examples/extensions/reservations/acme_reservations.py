"""Takes devices out of use on a machine, by lines such as ``openreg: firmware update until noon``.

The file with the lines is named by ACME_RESERVATIONS. A device in it is unavailable, with the text
as the reason, so that programs that ask for an accelerator find none, and everybody is told why.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from devhost import DeviceInfo, ProbeResult, hookimpl

if TYPE_CHECKING:
    from collections.abc import Generator


class Reservations:
    """Wraps two hooks: one to learn which device it is about, one to change its answer."""

    def __init__(self) -> None:
        self._device = ""

    @hookimpl(wrapper=True)
    def devhost_device(self) -> Generator[None, DeviceInfo, DeviceInfo]:
        """Remember the device's name, which devhost_probe does not tell."""
        info = yield
        self._device = info.name
        return info

    @hookimpl(wrapper=True)
    def devhost_probe(self) -> Generator[None, ProbeResult, ProbeResult]:
        """Let the plugin look for its hardware, and hide it if the device is reserved."""
        result = yield
        reason = reserved().get(self._device)
        if reason is None:
            return result
        return ProbeResult(available=False, reason=f"reserved: {reason}")


def reserved() -> dict[str, str]:
    """Return why which devices are reserved.

    Raises:
        OSError: The file that ACME_RESERVATIONS names cannot be read.
    """
    file = os.environ.get("ACME_RESERVATIONS")
    lines = Path(file).read_text(encoding="utf-8").splitlines() if file else []
    pairs = (line.partition(":") for line in lines if line.strip())
    return {name.strip(): text.strip() or "no reason given" for name, _, text in pairs}


reservations = Reservations()
