"""What is not the same on the device as on the CPU, each with the reason.

A difference that is listed here is asserted: the test fails as soon as it is gone, so that the list
stays true.
"""

from __future__ import annotations

_HOST_INDICES = (
    "PyTorch wants the indices on the CPU whatever the device, the test moves everything"
)

_CHUNKS = "PyTorch's Python code chooses the size of the chunks, which rounds, by the device's type"

KNOWN_DIFFERENCES: dict[tuple[str, str, str], str] = {
    ("result", "tensor_split", "any"): _HOST_INDICES,
    ("gradient", "tensor_split", "any"): _HOST_INDICES,
    ("layout", "tensor_split", "any"): _HOST_INDICES,
    ("lazy_bits", "tensor_split", "any"): _HOST_INDICES,
    ("lazy_bits", "nn.functional.max_pool1d", "any"): (
        "PyTorch's max_pool1d ignores the negative bit, for CPU tensors only"
    ),
    ("gradient", "nn.functional.linear_cross_entropy.chunked", "bfloat16"): _CHUNKS,
    ("gradient", "nn.functional.linear_cross_entropy.chunked", "float16"): _CHUNKS,
    ("gradient", "nn.functional.linear_cross_entropy.chunked_none", "bfloat16"): _CHUNKS,
    ("gradient", "nn.functional.linear_cross_entropy.chunked_none", "float16"): _CHUNKS,
    ("in_place", "addr", "any"): (
        "PyTorch's addr_ asks whether two arguments are one C++ object, which boxing them ends"
    ),
    ("layout", "stft", "any"): "the message holds tensors as text, with the device",
    ("lazy_bits", "nn.functional.ctc_loss", "any"): (
        "PyTorch's ctc_loss ignores the negative bit of lengths, for CPU tensors only"
    ),
    ("out", "_batch_norm_with_update", "any"): "the message holds tensors as text, with the device",
    ("out", "sparse_sampled_addmm", "any"): "the message holds tensors as text, with the device",
}
"""(test, operator, dtype or "any") to reason."""

NOT_COMPARED = {
    ("layout", "nn.functional.multilabel_margin_loss"): (
        "PyTorch's CPU kernel leaves the loss of no elements uninitialised"
    ),
    ("layout", "_chunk_cat"): "PyTorch's CPU kernel ends the process for a zero-dimensional tensor",
}
"""(test, operator) to reason: what the CPU does not survive or does not define; it is not run."""


def known_difference(test: str, operator: str, dtype: str) -> str | None:
    """Return why the operator's test is expected to find a difference, or None."""
    return KNOWN_DIFFERENCES.get((test, operator, dtype)) or KNOWN_DIFFERENCES.get(
        (test, operator, "any")
    )
