from sound_hooks import devhost_device, devhost_probe  # noqa: F401
