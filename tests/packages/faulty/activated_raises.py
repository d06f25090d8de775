from working_hooks import *  # noqa: F403

from devhost import hookimpl


@hookimpl
def devhost_activated(status):
    raise OSError("nobody to tell")
