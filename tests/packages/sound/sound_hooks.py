"""A sound plugin without kernels, whose device is called "faulty": what is wrong gets added."""

from types import SimpleNamespace

from devhost import DeviceInfo, ProbeResult, hookimpl


class Runtime:
    def device_count(self):
        return 1

    def current_device(self):
        return 0

    def set_device(self, index):
        pass

    def exchange_device(self, index):
        return 0

    def synchronize(self, index):
        pass

    def init(self):
        pass

    def is_in_bad_fork(self):
        return False

    def get_device_properties(self, index):
        return SimpleNamespace(name="Sound", total_memory=0)


@hookimpl
def devhost_device():
    return DeviceInfo(name="faulty", description="Sound as it stands")


@hookimpl
def devhost_probe():
    return ProbeResult(available=True, devices=("Sound",))


@hookimpl
def devhost_kernels(registry):
    pass


@hookimpl
def devhost_runtime():
    return Runtime()
