"""What keeps a plugin's failure to the plugin: errors that name it, and a log that never fails.

Activation puts these around everything that a plugin does.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from devhost import torch_compat
from devhost.errors import (
    DevhostError,
    PluginCheckError,
    PluginError,
    SlotTakenError,
    exception_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from devhost.discovery import InstalledPlugin

logger = logging.getLogger("devhost")


@contextlib.contextmanager
def explained(plugin: InstalledPlugin, doing: str, known: type[DevhostError]) -> Iterator[None]:
    """Turn what the block raises, unless it is ``known``, into a PluginError that explains it."""
    try:
        yield
    except (KeyboardInterrupt, known):
        raise
    except BaseException as error:  # plugins raise anything, SystemExit included
        from devhost.remedies import remedy  # not loaded for nothing

        raise PluginError(
            plugin.describe(),
            f"failed while {doing}: {exception_text(error)}",
            remedy(plugin, error),
            plugin.kind,
        ) from error


def log(level: int, message: str, *values: object) -> None:
    """Log a message of devhost's in one line."""
    # Neither a handler of the program's that raises nor a plugin that has closed sys.stderr may end
    # `import torch`; the status has it all.
    with contextlib.suppress(Exception):
        logger.log(level, f"devhost: {message}", *values, stacklevel=2)


def refuse(plugin: InstalledPlugin, problems: Iterable[str]) -> None:
    """Raise PluginCheckError if there are problems."""
    problems = list(problems)
    if problems:
        raise PluginCheckError(plugin.describe(), problems, plugin.kind)


def require_untouched_slot(plugin: InstalledPlugin, doing: str) -> None:
    """Raise PluginError if the plugin has taken the slot itself."""
    if not torch_compat.slot_is_free_for(plugin.name):
        raise PluginError(
            plugin.describe(),
            f"took PyTorch's slot by itself while {doing}: it now belongs to "
            f"{torch_compat.slot_holder()}, and cannot be given back",
            "Remove the plugin's calls of rename_privateuse1_backend(), _register_device_module() "
            "and generate_methods_for_privateuse1_backend(): devhost makes them, after its checks",
        )


def require_free_slot(plugin: InstalledPlugin) -> None:
    """Raise SlotTakenError if somebody else has the slot."""
    if not torch_compat.slot_is_free_for(plugin.name):
        raise SlotTakenError(
            f"device plugin {plugin.describe()} stays inactive: PyTorch has one slot for such "
            f"devices and it is taken by {torch_compat.slot_holder()}. Uninstall one of them, or "
            "keep the other from taking the slot; `devhost doctor` shows what takes it"
        )
