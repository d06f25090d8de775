"""OpenReg: a simulated accelerator for PyTorch.

Nothing needs to import this package: devhost finds it and loads it at the end of ``import torch``.
"""
