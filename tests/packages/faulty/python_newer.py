def devhost_device() -> !str:
    pass
