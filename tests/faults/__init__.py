"""The fault table: what can be wrong with a device plugin, and what a user is to see of it.

One entry per module in packages/faulty, or per way of installing one. test_faults.py tries each in
a fresh interpreter, in `devhost list` and in `devhost doctor`, and the page "What happens when ..."
of the documentation shows the messages that came.
"""

import shutil
from pathlib import Path
from typing import Any

from .activating import ACTIVATING, IDENTITY, PROCESS, SLOT
from .importing import ENDING, IMPORTING, METADATA
from .installing import add

PACKAGES = Path(__file__).parent.parent / "packages"

GROUPS = {
    "While the plugin is imported": IMPORTING,
    "How the plugin is installed": METADATA,
    "What the plugin says it is": IDENTITY,
    "While the plugin is activated": ACTIVATING,
    "What the plugin does to the process": PROCESS,
    "Who has PyTorch's slot": SLOT,
    "What no code in the same process survives": ENDING,
}
FAULTS = {name: fault for group in GROUPS.values() for name, fault in group.items()}


def install(site: Any, name: str) -> None:
    """Add the faulty plugin ``name``, and what its module imports, to an environment."""
    fault = FAULTS[name]
    site.root.mkdir(parents=True, exist_ok=True)
    for pattern in ("sound/*.py", "minimal/*.py", "working/*.py", f"faulty/{name}*.py"):
        for module in PACKAGES.glob(pattern):
            shutil.copy(module, site.root)
    if fault.install is not None:
        fault.install(site, name)
    else:
        add(site, name, fault.value or name, metadata=fault.metadata)
