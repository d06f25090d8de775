"""Ways in which a faulty plugin is installed, where it is more than one sound distribution."""

from collections.abc import Callable
from typing import Any


def add(site: Any, distribution: str, value: str, metadata: str = "") -> None:
    """Add a distribution with an entry point for the device "faulty"."""
    head = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
    site.add(
        distribution,
        f"[devhost.devices]\nfaulty = {value}\n",
        metadata=f"{head}{metadata}".encode(),
    )


def with_metadata(content: bytes | None) -> Callable[[Any, str], None]:
    """Install a plugin whose METADATA is ``content``, or is not there."""

    def install(site: Any, name: str) -> None:
        add(site, name, "working_hooks")
        file = site.root / f"{name}-1.0.dist-info" / "METADATA"
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)

    return install


def with_latin_entry_points(site: Any, name: str) -> None:
    site.add(name, b"[devhost.devices]\ncaf\xe9 = sound_hooks\n")


def with_native_file(file: str) -> Callable[[Any, str], None]:
    """Install a plugin with a file that looks like a compiled module."""

    def install(site: Any, name: str) -> None:
        add(site, name, name)
        path = site.root / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"this is no library")

    return install


def as_named(device: str) -> Callable[[Any, str], None]:
    """Install a plugin for a device of that name."""
    return lambda site, name: site.add_device(device, name, distribution=name) and None


def twice(site: Any, name: str) -> None:
    add(site, name, "working_hooks")
    add(site, f"{name}_too", "working_hooks")


def with_shadowed_copy(site: Any, name: str) -> None:
    add(site, name, "working_hooks")
    other = type(site)(site.root / "other", site.base)
    add(other, name, "working_hooks")
    site.base = f"{other.root}:{site.base}"


def beside_a_foreign_backend(site: Any, name: str) -> None:
    add(site, name, "working_hooks")
    source = """
        import sys, torch

        def start():
            torch.utils.rename_privateuse1_backend("foreign")
            torch._register_device_module("foreign", sys.modules[__name__])
    """
    site.add("foreign", "[torch.backends]\nforeign = foreign:start\n", {"foreign.py": source})


def beside_an_extension(site: Any, name: str) -> None:
    """Install the module as an extension, beside a sound plugin."""
    add(site, name, "working_hooks")
    site.add(f"{name}_extension", f"[devhost.extensions]\nextension = {name}\n")
