from sound_hooks import devhost_device, devhost_kernels, devhost_runtime  # noqa: F401


def devhost_probe():
    pass
