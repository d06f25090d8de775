"""Says plainly that ``torch.compile``'s default backend does not know the device.

Inductor asks the device module for its code generator, under the names below, when it is first
used. Without them it fails with a ``KeyError`` from deep inside. A plugin that has a code generator
supplies the names itself, as ``module_members`` of its runtime.
"""

from __future__ import annotations

from typing import NoReturn

from devhost.errors import CompileBackendError

INDUCTOR_NAMES = (
    "Scheduling",
    "PythonWrapperCodegen",
    "CppWrapperCodegen",
    "WrapperFxCodegen",
)
"""What ``torch._inductor.codegen.common.init_backend_registration`` looks for."""


class NoInductor:
    """Stands where Inductor's classes for the device would be, and refuses every use.

    Args:
        plugin: Who supplies the device, as text for the message.
    """

    def __init__(self, plugin: object) -> None:
        self._plugin = plugin

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Refuse to be constructed."""
        self._refuse()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # what Python itself asks for, to copy or to inspect
            raise AttributeError(name)
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise CompileBackendError(
            "torch.compile's default backend, Inductor, generates no code for device "
            f"{self._plugin}. Use torch.compile(..., backend='aot_eager') or backend='eager', "
            "which work on it"
        )
