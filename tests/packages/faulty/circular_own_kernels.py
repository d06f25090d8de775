from circular_own import NAME  # noqa: F401

KERNELS = ()
