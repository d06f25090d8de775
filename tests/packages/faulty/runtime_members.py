from types import SimpleNamespace

from sound_hooks import *  # noqa: F403

from devhost import hookimpl


@hookimpl
def devhost_runtime():
    return SimpleNamespace(
        device_count=1,
        current_device=lambda: 0,
        set_device=lambda index: None,
        synchronize=lambda index: None,
        init=lambda: None,
        is_in_bad_fork=lambda: False,
        get_device_properties=lambda index: None,
        module_members=["answer"],
    )


@hookimpl
def devhost_rng():
    return SimpleNamespace()


@hookimpl
def devhost_amp():
    return ["bfloat16"]
