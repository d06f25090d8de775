"""Says plainly that ``torch.compile``'s default backend does not know the device.

Inductor generates code, and for a device without a code generator it fails somewhere inside with a
``KeyError``. A plugin that has one supplies ``Scheduling`` and the wrapper classes that
``torch._inductor`` looks for in the device module, as ``module_members`` of its runtime.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from devhost.errors import CompileBackendError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def refuse_inductor(device_type: str, plugin: str) -> None:
    """Let Inductor raise CompileBackendError for graphs that use ``device_type``."""
    wrapper: Any = torch._TorchCompileInductorWrapper
    compile_graph: Callable[..., Any] = wrapper.__call__

    @functools.wraps(compile_graph)
    def __call__(  # noqa: N807
        self: object, graph: torch.fx.GraphModule, inputs: Sequence[object], **options: object
    ) -> Any:
        if device_type in _device_types(graph, inputs):
            raise CompileBackendError(
                "torch.compile's default backend, Inductor, generates no code for device "
                f"{plugin}. "
                "Use torch.compile(..., backend='aot_eager') or backend='eager', which work on it"
            )
        return compile_graph(self, graph, inputs, **options)

    wrapper.__call__ = __call__


def _device_types(graph: torch.fx.GraphModule, inputs: Sequence[object]) -> Iterator[str]:
    """Give the device types of a graph's inputs and of everything that it computes."""
    computed = (node.meta.get("example_value") for node in graph.graph.nodes)
    for value in (*inputs, *computed):
        if isinstance(value, torch.Tensor):
            yield value.device.type
