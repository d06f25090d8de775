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

# What has no right result on the CPU either, because PyTorch's kernel uses memory beyond its
# arguments. It is not run.
_NO_TENSOR = "zero-dimensional tensors end the process"
_OTHER_PIVOTS = "pivots of another matrix break the heap"
_NO_ROWS = "no rows give any number"
_RANDOM = "the result is another one each time"
_BATCHES = "batches are taken for contiguous, and written past the end"

UNDEFINED = {
    ("_chunk_cat", "zero-dimensional"): _NO_TENSOR,
    ("linalg.ldl_solve", "expanded"): _OTHER_PIVOTS,
    ("linalg.ldl_solve", "overlapping"): _OTHER_PIVOTS,
    ("nn.functional.multi_margin_loss", "zero-size"): _NO_ROWS,
    ("nn.functional.multilabel_margin_loss", "zero-size"): _NO_ROWS,
    ("nn.functional.scaled_dot_product_attention", "overlapping"): _RANDOM,
    ("linalg.lu", "transposed"): _BATCHES,
    ("lu_unpack", "transposed"): _BATCHES,
    ("tril", "transposed"): _BATCHES,
    ("triu", "transposed"): _BATCHES,
}
"""(operator, form) to what happens."""


def known_difference(test: str, operator: str, dtype: str) -> str | None:
    """Return why the operator's test is expected to find a difference, or None."""
    return KNOWN_DIFFERENCES.get((test, operator, dtype)) or KNOWN_DIFFERENCES.get(
        (test, operator, "any")
    )
