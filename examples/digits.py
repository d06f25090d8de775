"""Train a small CNN on scikit-learn's handwritten digits, on any device PyTorch knows.

    python examples/digits.py                 # the current accelerator, or the CPU without one
    python examples/digits.py --device cpu    # the same training on the CPU

Everything random happens on the CPU under one seed: the model is initialised there and then moved,
and the order of the batches comes from a CPU generator. Two devices therefore train on the same
numbers, and the losses printed after each epoch agree but for rounding, below 1e-5. The data set
(1797 images of 8x8 pixels) is part of scikit-learn: nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm


def device(text: str) -> torch.device:
    """Parse a command-line device; PyTorch's own message says which names it knows."""
    try:
        return torch.device(text)
    except RuntimeError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def positive(text: str) -> int:
    """Parse a command-line integer that must be at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def parse_arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--device",
        type=device,
        default=torch.accelerator.current_accelerator(check_available=True) or "cpu",
        help="device to train on, as in torch.device (default: %(default)s)",
    )
    parser.add_argument("--epochs", type=positive, default=8, help="default: %(default)s")
    parser.add_argument("--batch-size", type=positive, default=64, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument(
        "--plot", type=Path, default=Path("digits.png"), help="PNG to write (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, help="also write losses and accuracies to this file")
    return parser.parse_args()


def load_data() -> tuple[TensorDataset, TensorDataset]:
    """Return training and test images, float32 (N, 1, 8, 8) in [0, 1], with labels, int64 (N,)."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target, dtype=torch.int64)
    train, test = train_test_split(
        torch.arange(len(labels)), test_size=0.2, random_state=0, stratify=labels
    )
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def make_model() -> nn.Module:
    """Return a CNN from images (N, 1, 8, 8) to scores (N, 10).

    GELU and average pooling are smooth. With ReLU and max pooling a difference in the last bit can
    change which input gets the gradient, and two devices drift apart by 1e-4 in a few epochs.
    """
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.GELU(),
        nn.AvgPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.GELU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 2 * 2, 10),
    )


def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: DataLoader[tuple[torch.Tensor, ...]],
    device: torch.device,
) -> float:
    """Train once over the data and return the mean loss of a sample."""
    model.train()
    total, samples = 0.0, 0
    for images, labels in batches:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
        samples += len(labels)
    return total / samples


@torch.no_grad()
def accuracy(model: nn.Module, data: TensorDataset, device: torch.device) -> float:
    """Return the share of images whose most likely class is their label."""
    model.eval()
    images, labels = data.tensors
    predicted = model(images.to(device)).argmax(1).cpu()
    return (predicted == labels).double().mean().item()


def save_plot(path: Path, losses: list[float], accuracies: list[float], title: str) -> None:
    """Save loss and accuracy of every epoch, side by side, as a PNG."""
    epochs = range(1, len(losses) + 1)
    # A Figure of its own, without pyplot, needs no screen.
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    figure.suptitle(title)
    left, right = figure.subplots(1, 2)
    left.plot(epochs, losses, marker="o")
    left.set(xlabel="epoch", ylabel="training loss", yscale="log")
    right.plot(epochs, accuracies, marker="o", color="tab:green")
    right.set(xlabel="epoch", ylabel="test accuracy")
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
    figure.savefig(path, format="png", dpi=120)


def main() -> None:
    """Train, print every epoch, and save the plot."""
    arguments = parse_arguments()
    train_data, test_data = load_data()

    torch.manual_seed(arguments.seed)
    model = make_model().to(arguments.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = DataLoader(
        train_data,
        arguments.batch_size,
        shuffle=True,
        generator=torch.Generator().manual_seed(arguments.seed),
    )

    print(f"training on {arguments.device}: {len(train_data)} images, {arguments.epochs} epochs")
    losses, accuracies = [], []
    for epoch in tqdm(range(1, arguments.epochs + 1), unit="epoch"):
        losses.append(train_epoch(model, optimizer, batches, arguments.device))
        accuracies.append(accuracy(model, test_data, arguments.device))
        # Eight digits, so that runs on two devices can be compared by eye.
        tqdm.write(f"epoch {epoch:2}  loss {losses[-1]:.8f}  test accuracy {accuracies[-1]:.4f}")

    title = f"digits on {arguments.device}, seed {arguments.seed}"
    save_plot(arguments.plot, losses, accuracies, title)
    print(f"test accuracy {accuracies[-1]:.4f}; plot saved to {arguments.plot}")
    if arguments.json is not None:
        result = {"device": str(arguments.device), "losses": losses, "accuracies": accuracies}
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
