"""A device for PyTorch on NumPy arrays: device `ndarray`, in Python without a compiler.

Nothing needs to import this package: devhost finds it and loads it at the end of ``import torch``.
"""
