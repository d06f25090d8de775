"""Half of a circle of modules: circular_own_kernels asks for what is not here yet."""

from circular_own_kernels import KERNELS  # noqa: F401

NAME = "faulty"
