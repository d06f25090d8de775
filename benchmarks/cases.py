"""What is timed: operators at a small and a large size, copies, and whole training steps.

A case builds its inputs on the CPU from a fixed seed and moves them, so that both devices work on
the same numbers. Small operators show what a call costs, large ones what the kernel costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812, the name PyTorch itself uses
from torch import nn

Call = Callable[[], object]
"""Does the work once; the result is dropped."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One row of the report.

    Args:
        group: the table it belongs to.
        name: unique within the group.
        prepare: makes the inputs on the given device and returns the call to time.
    """

    group: str
    name: str
    prepare: Callable[[torch.device], Call]


@dataclass(frozen=True)
class Size:
    """The same input at the two sizes that an operator is timed at."""

    small: Shape
    large: Shape


VECTOR = Size((16,), (1 << 20,))
MATRIX = Size((16, 16), (512, 512))
ROW = Size((16,), (512,))
BATCH = Size((2, 8, 8), (16, 128, 128))
IMAGES = Size((1, 4, 8, 8), (8, 16, 32, 32))
FILTERS = Size((4, 4, 3, 3), (16, 16, 3, 3))
HEADS = Size((1, 2, 8, 8), (4, 8, 128, 32))


def _autocast_products(a: torch.Tensor, b: torch.Tensor) -> None:
    # Many in one region, as in a training step, so that the products count and not its entry.
    with torch.autocast(a.device.type, torch.bfloat16):
        for _ in range(16):
            torch.mm(a, b)


OPERATORS: dict[str, tuple[Callable[..., object], tuple[Size, ...]]] = {
    # Element by element
    "add": (torch.add, (VECTOR, VECTOR)),
    "add scalar": (lambda a: a + 2.5, (VECTOR,)),
    "mul_": (lambda a: a.mul_(1.0), (VECTOR,)),
    "maximum": (torch.maximum, (VECTOR, VECTOR)),
    "compare": (torch.lt, (VECTOR, VECTOR)),
    "where": (lambda a, b: torch.where(a < b, a, b), (VECTOR, VECTOR)),
    "log": (torch.log, (VECTOR,)),
    "rsqrt": (torch.rsqrt, (VECTOR,)),
    "relu": (torch.relu, (VECTOR,)),
    "gelu": (F.gelu, (VECTOR,)),
    "silu": (F.silu, (VECTOR,)),
    "broadcast sub": (torch.sub, (MATRIX, ROW)),
    "foreach mul": (lambda a, b: torch._foreach_mul([a, b], 0.5), (VECTOR, VECTOR)),  # noqa: SLF001
    # Reductions
    "sum": (torch.sum, (VECTOR,)),
    "mean of rows": (lambda a: a.mean(1), (MATRIX,)),
    "amax of columns": (lambda a: a.amax(0), (MATRIX,)),
    "argmin": (torch.argmin, (VECTOR,)),
    "var": (torch.var, (VECTOR,)),
    "cumsum": (lambda a: a.cumsum(0), (VECTOR,)),
    "topk": (lambda a: a.topk(4), (VECTOR,)),
    "sort rows": (lambda a: a.sort(1), (MATRIX,)),
    # Linear algebra and layers
    "mm": (torch.mm, (MATRIX, MATRIX)),
    "mv": (torch.mv, (MATRIX, ROW)),
    "bmm": (torch.bmm, (BATCH, BATCH)),
    "linear": (F.linear, (MATRIX, MATRIX, ROW)),
    "softmax": (lambda a: a.softmax(-1), (MATRIX,)),
    "layer norm": (lambda a, w, b: F.layer_norm(a, w.shape, w, b), (MATRIX, ROW, ROW)),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), (IMAGES, FILTERS)),
    "max pool": (lambda x: F.max_pool2d(x, 2), (IMAGES,)),
    "batch norm": (lambda x: F.batch_norm(x, None, None, training=True), (IMAGES,)),
    "attention": (F.scaled_dot_product_attention, (HEADS, HEADS, HEADS)),
    # Memory
    "clone": (torch.clone, (VECTOR,)),
    "cat": (lambda a, b: torch.cat((a, b)), (VECTOR, VECTOR)),
    "transposed copy": (lambda a: a.t().contiguous(), (MATRIX,)),
    "to float64": (lambda a: a.double(), (VECTOR,)),
    "masked fill": (lambda a, b: a.masked_fill(a < b, 0.0), (VECTOR, VECTOR)),
    "zeros": (torch.zeros_like, (VECTOR,)),
    # Random numbers and autocast
    "rand": (lambda a: torch.rand(a.shape, device=a.device), (VECTOR,)),
    "autocast mm": (_autocast_products, (MATRIX, MATRIX)),
    "dropout": (F.dropout, (VECTOR,)),
    "uniform": (torch.rand_like, (VECTOR,)),
}

# What has no large size: it moves no data, or as much at every size.
CALLS: dict[str, Callable[[torch.Tensor], object]] = {
    "empty": torch.empty_like,
    "view": lambda a: a.view(4, 4),
    "slice": lambda a: a[2:9],
    "item": lambda a: a[3].item(),
    "to cpu": lambda a: a.to("cpu", copy=True),
}


def _tensors(shapes: tuple[Shape, ...], device: torch.device) -> list[torch.Tensor]:
    """Return float32 tensors of the shapes with values in [0, 1), the same for every device."""
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(shape, generator=generator).to(device) for shape in shapes]


def _operator(
    function: Callable[..., object], shapes: tuple[Shape, ...], device: torch.device
) -> Call:
    return partial(function, *_tensors(shapes, device))


def _copy(source: str, destination: str, shape: Shape, device: torch.device) -> Call:
    """Copy float32 data between "host" and "device"; on the CPU both are the host."""
    places = {"host": torch.device("cpu"), "device": device}
    (data,) = _tensors((shape,), places[source])
    return partial(torch.empty(shape, device=places[destination]).copy_, data)


def _train(
    make_model: Callable[[], nn.Module],
    input_shape: Shape,
    make_optimizer: Callable[..., torch.optim.Optimizer],
    device: torch.device,
) -> Call:
    """Train a classifier of ten classes for one step: forward, backward and optimizer."""
    torch.manual_seed(0)
    model = make_model().to(device)
    optimizer = make_optimizer(model.parameters())
    inputs = torch.randn(input_shape).to(device)
    labels = torch.randint(10, input_shape[:1]).to(device)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


def _mlp() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 256),
        nn.GELU(),
        nn.Linear(256, 64),
        nn.GELU(),
        nn.Linear(64, 10),
    )


def _cnn() -> nn.Module:
    def block(channels_in: int, channels_out: int) -> list[nn.Module]:
        convolution = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        return [convolution, nn.BatchNorm2d(channels_out), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(*block(3, 16), *block(16, 32), nn.Flatten(), nn.Linear(32 * 8 * 8, 10))


class _SequenceClassifier(nn.Module):
    """Encode a sequence (N, T, 32), then classify its mean."""

    def __init__(self, encoder: nn.Module, features: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(features, 10)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        encoded = self.encoder(sequence)
        if isinstance(encoded, tuple):  # a recurrent layer also returns its last state
            encoded = encoded[0]
        scores: torch.Tensor = self.head(encoded.mean(1))
        return scores


def _transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    return _SequenceClassifier(nn.TransformerEncoder(layer, 2), 32)


def _lstm() -> nn.Module:
    return _SequenceClassifier(nn.LSTM(32, 64, batch_first=True), 64)


_SGD = partial(torch.optim.SGD, lr=0.01, momentum=0.9)
_ADAMW = partial(torch.optim.AdamW, lr=1e-3)

_MODELS: dict[str, tuple[Callable[[], nn.Module], Shape, Callable[..., torch.optim.Optimizer]]] = {
    "MLP, SGD": (_mlp, (64, 8, 8), _SGD),
    "CNN, AdamW": (_cnn, (8, 3, 32, 32), _ADAMW),
    "transformer, AdamW": (_transformer, (8, 24, 32), _ADAMW),
    "LSTM, SGD": (_lstm, (8, 24, 32), _SGD),
}

_COPIES = [("host", "device"), ("device", "host"), ("device", "device")]
_COPY_SHAPES = {"1 MiB": (1 << 18,), "64 MiB": (1 << 24,)}

CASES: list[Case] = [
    *(
        Case("small operators", name, partial(_operator, function, tuple(s.small for s in sizes)))
        for name, (function, sizes) in OPERATORS.items()
    ),
    *(
        Case("small operators", name, partial(_operator, function, (VECTOR.small,)))
        for name, function in CALLS.items()
    ),
    *(
        Case("large operators", name, partial(_operator, function, tuple(s.large for s in sizes)))
        for name, (function, sizes) in OPERATORS.items()
    ),
    *(
        Case("copies", f"{source} to {target}, {size}", partial(_copy, source, target, shape))
        for size, shape in _COPY_SHAPES.items()
        for source, target in _COPIES
    ),
    *(
        Case("training steps", name, partial(_train, model, shape, optimizer))
        for name, (model, shape, optimizer) in _MODELS.items()
    ),
]
