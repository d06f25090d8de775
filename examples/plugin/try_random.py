"""Draw on device acme: python examples/plugin/try_random.py."""

import torch

torch.manual_seed(7)
state = torch.acme.get_rng_state()
print(torch.rand(3, device="acme").cpu())
torch.acme.set_rng_state(state)
print(torch.rand(3, device="acme").cpu())
own = torch.acme.default_generators[0].manual_seed(7)
print(torch.rand(3, device="acme", generator=own).cpu())
try:
    torch.rand(3, device="acme", generator=torch.Generator())
except RuntimeError as error:
    print(error)
