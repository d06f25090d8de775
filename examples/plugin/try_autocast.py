"""Run operators under autocast on device acme: python examples/plugin/try_autocast.py."""

import torch

single = torch.ones(2, 2).to("acme")
half = single.to(torch.float16)
with torch.autocast("acme"):
    print("mm", torch.mm(single, single).dtype)
    print("exp", torch.exp(half).dtype)
    print("atan2", torch.atan2(half, single).dtype, torch.atan2(half, half).dtype)
    print("mul", (half * half).dtype)
