from sound_hooks import *  # noqa: F403

from devhost import hookimpl


@hookimpl
def devhost_device():
    pass
