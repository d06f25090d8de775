"""What is not the same on the device as on the CPU, each with the reason.

A difference that is listed here is asserted: the test fails as soon as it is gone, so that the list
stays true.
"""

from __future__ import annotations

_HOST_INDICES = (
    "PyTorch wants the indices on the CPU whatever the device; the test moves everything"
)
_CHUNKS = "PyTorch's Python code chooses the size of the chunks, which rounds, by the device's type"

KNOWN_DIFFERENCES: dict[tuple[str, str, str], str] = {
    ("result", "tensor_split", "any"): _HOST_INDICES,
    ("gradient", "tensor_split", "any"): _HOST_INDICES,
    ("layout", "tensor_split", "any"): _HOST_INDICES,
    ("lazy_bits", "tensor_split", "any"): _HOST_INDICES,
    **{
        (test, f"nn.functional.linear_cross_entropy.{variant}", dtype): _CHUNKS
        for variant, dtype, tests in (
            ("chunked", "float16", ("result", "gradient", "layout", "lazy_bits")),
            ("chunked", "bfloat16", ("gradient", "layout")),
            ("chunked_none", "float16", ("result", "gradient", "layout", "lazy_bits")),
            ("chunked_none", "bfloat16", ("result", "gradient", "layout", "lazy_bits")),
        )
        for test in tests
    },
    ("lazy_bits", "nn.functional.max_pool1d", "any"): (
        "PyTorch's max_pool1d ignores the negative bit, for CPU tensors only"
    ),
    ("lazy_bits", "nn.functional.ctc_loss", "any"): (
        "PyTorch's ctc_loss ignores the negative bit of the lengths, for CPU tensors only"
    ),
    ("in_place", "addr", "any"): (
        "PyTorch's addr_ asks whether two arguments are one C++ object, which boxing them ends"
    ),
    ("out", "_batch_norm_with_update", "any"): "the message holds tensors as text, with the device",
}
"""(test, operator, dtype or "any") to reason."""

_BEYOND = "PyTorch's CPU kernel uses memory beyond its arguments: "

UNDEFINED = {
    ("layout", "_chunk_cat"): _BEYOND + "zero-dimensional tensors end the process",
    ("layout", "linalg.ldl_solve"): _BEYOND + "pivots of another matrix break the heap",
    ("layout", "nn.functional.multi_margin_loss"): _BEYOND + "no rows give any number",
    ("layout", "nn.functional.multilabel_margin_loss"): _BEYOND + "no rows give any number",
}
"""(test, operator) to reason: what has no right result on the CPU either, so that it is not run."""


def known_difference(test: str, operator: str, dtype: str) -> str | None:
    """Return why the operator's test is expected to find a difference, or None."""
    return KNOWN_DIFFERENCES.get((test, operator, dtype)) or KNOWN_DIFFERENCES.get(
        (test, operator, "any")
    )
