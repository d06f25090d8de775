"""There are no collectives on the device: that is said plainly, and what needs none works."""

import pytest
import torch

PROCESS_GROUP = """
import tempfile, torch, torch.distributed as dist
store = dist.FileStore(tempfile.mkdtemp() + "/store", 1)
try:
    dist.get_default_backend_for_device("openreg")
except ValueError as error:
    print(error)
try:
    dist.init_process_group(store=store, rank=0, world_size=1)
except ValueError as error:
    print(error)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
x = torch.ones(2)
dist.all_reduce(x)
print(x.tolist())
try:
    dist.all_reduce(x.to("openreg"))
except RuntimeError as error:
    print(error)
dist.destroy_process_group()
"""


def test_process_groups_name_the_device_and_gloo_serves_the_cpu(fresh):
    process = fresh(PROCESS_GROUP)
    assert process.returncode == 0, process.stderr
    backend, default, reduced, collective = process.stdout.splitlines()
    assert backend == "Default backend not registered for device : openreg"
    assert "don't know which communication backend to use for this accelerator" in default
    assert "openreg" in default
    assert reduced == "[1.0, 1.0]"
    assert collective == "No backend type associated with device type openreg"


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")  # PyTorch's, for one process
def test_checkpoints_keep_device_and_values(tmp_path):
    from torch.distributed import checkpoint

    saved = {
        "weights": torch.arange(4.0, device="openreg:1"),
        "step": torch.tensor(3, device="openreg:0"),
    }
    checkpoint.save(saved, checkpoint_id=tmp_path / "checkpoint", no_dist=True)
    loaded = {name: torch.zeros_like(tensor) for name, tensor in saved.items()}
    checkpoint.load(loaded, checkpoint_id=tmp_path / "checkpoint", no_dist=True)
    for name, tensor in saved.items():
        assert loaded[name].device == tensor.device
        assert torch.equal(loaded[name].cpu(), tensor.cpu())
