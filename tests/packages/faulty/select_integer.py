"""An extension: its answer is neither a name nor None."""

from devhost import hookimpl


@hookimpl
def devhost_select(candidates):
    return 7
