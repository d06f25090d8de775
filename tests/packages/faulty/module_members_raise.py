from sound_hooks import *  # noqa: F403
from sound_hooks import Runtime

from devhost import hookimpl


class Evasive(Runtime):
    @property
    def module_members(self):
        raise OSError("not now")


@hookimpl
def devhost_runtime():
    return Evasive()
