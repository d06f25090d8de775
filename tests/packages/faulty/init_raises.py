from minimal_plugin import Runtime
from working_hooks import *  # noqa: F403

from devhost import hookimpl


class Reluctant(Runtime):
    def init(self):
        raise OSError("the driver does not start")


@hookimpl
def devhost_runtime():
    return Reluctant()
