"""A device called "faulty" that works: what is odd about it gets added."""

from minimal_plugin import devhost_kernels, devhost_runtime  # noqa: F401
from sound_hooks import devhost_device, devhost_probe  # noqa: F401
