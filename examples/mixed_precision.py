"""Train a CNN and a small transformer in float32 and under autocast, and compare their losses.

    python examples/mixed_precision.py                 # the current accelerator, or the CPU
    python examples/mixed_precision.py --device cpu

Each model trains three times on scikit-learn's handwritten digits, from the same weights and on the
same batches: in float32, under `torch.autocast` in bfloat16, and in float16 with a `GradScaler`,
without which small float16 gradients would vanish. The last line of each model says how far its
losses in the last epoch are from float32's. The plot shows every epoch.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import digits
import torch
from matplotlib.figure import Figure
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

PRECISIONS = (torch.float32, torch.bfloat16, torch.float16)


class RowTransformer(nn.Module):
    """A transformer encoder from images (N, 1, 8, 8), whose rows it reads, to scores (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(8, 32)
        self.position = nn.Parameter(0.1 * torch.randn(8, 32))
        # Dropout would draw different numbers on each device.
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the scores."""
        rows = self.embed(images.squeeze(1)) + self.position
        scores: torch.Tensor = self.head(self.encoder(rows).mean(1))
        return scores


MODELS = {"CNN": digits.make_model, "transformer": RowTransformer}


def parse_arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--device",
        type=digits.device,
        default=torch.accelerator.current_accelerator(check_available=True) or "cpu",
        help="device to train on, as in torch.device (default: %(default)s)",
    )
    parser.add_argument("--epochs", type=digits.positive, default=6, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument(
        "--plot",
        type=Path,
        default=Path("mixed_precision.png"),
        help="PNG to write (default: %(default)s)",
    )
    parser.add_argument("--json", type=Path, help="also write the losses to this file")
    return parser.parse_args()


def train(
    model: nn.Module,
    data: TensorDataset,
    precision: torch.dtype,
    device: torch.device,
    arguments: argparse.Namespace,
) -> list[float]:
    """Train a model and return the mean loss of every epoch."""
    autocast = torch.autocast(device.type, precision, enabled=precision != torch.float32)
    scaler = torch.amp.GradScaler(device.type, enabled=precision == torch.float16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    order = torch.Generator().manual_seed(arguments.seed)
    batches = DataLoader(data, batch_size=64, shuffle=True, generator=order)
    losses = []
    for _ in range(arguments.epochs):
        total = 0.0
        for images, labels in batches:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            with autocast:
                loss = nn.functional.cross_entropy(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            total += loss.item() * len(labels)
        losses.append(total / len(data))
    return losses


def save_plot(path: Path, losses: dict[str, dict[str, list[float]]], title: str) -> None:
    """Save the losses of every model, side by side, as a PNG."""
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    figure.suptitle(title)
    for axes, (name, curves) in zip(figure.subplots(1, len(losses)), losses.items(), strict=True):
        for (precision, values), marker in zip(curves.items(), "o+x", strict=True):
            axes.plot(range(1, len(values) + 1), values, marker=marker, label=precision)
        axes.set(title=name, xlabel="epoch", ylabel="training loss", yscale="log")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, format="png", dpi=120)


def main() -> None:
    """Train every model in every precision, compare, and save the plot."""
    arguments = parse_arguments()
    device = torch.device(arguments.device)
    data, _ = digits.load_data()
    losses: dict[str, dict[str, list[float]]] = {}
    with tqdm(total=len(MODELS) * len(PRECISIONS), unit="training") as progress:
        for name, make_model in MODELS.items():
            losses[name] = {}
            for precision in PRECISIONS:
                torch.manual_seed(arguments.seed)
                model = make_model().to(device)
                label = str(precision).removeprefix("torch.")
                losses[name][label] = train(model, data, precision, device, arguments)
                progress.update()
    for name, curves in losses.items():
        reference = curves["float32"][-1]
        for label, values in curves.items():
            print(f"{name:12} {label:9} loss {values[-1]:.5f}  {values[-1] / reference - 1:+.2%}")

    save_plot(arguments.plot, losses, f"digits on {device}, seed {arguments.seed}")
    print(f"plot saved to {arguments.plot}")
    if arguments.json is not None:
        result = {"device": str(device), "losses": losses}
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
