import torch

torch.utils.rename_privateuse1_backend("faulty")
raise OSError("after the rename")
