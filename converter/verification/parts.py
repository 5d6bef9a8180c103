"""Graphs and functions that a run of a model executes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from opshift.adapters.node import Node, Tensor
from opshift.adapters.tensors import read_tensor
from opshift.converter.constants import constant_node
from opshift.converter.opsets import opset_imports


class Part(NamedTuple):
    """Graph or function, its opset imports, and the enclosing graph."""

    container: Any
    opsets: Mapping[str, int]
    outer: Part | None = None

    def constant(self, name: str) -> Tensor | None:
        """Return the value of a Constant node, or of an initializer that callers cannot override."""
        for initializer in getattr(self.container, "initializer", ()):
            if initializer.name == name:
                is_default = any(value.name == name for value in self.container.input)
                return None if is_default else read_tensor(initializer)
        for node in self.container.node:
            if name in node.output:
                return constant_node(Node.of(node)) if node.op_type == "Constant" else None
        return self.outer.constant(name) if self.outer else None


def parts_of(model: Any) -> Iterator[Part]:
    """Yield the main graph, the functions, and all subgraphs.

    Raises:
        InvalidModel: opset imports are missing or contradict each other.
    """
    opsets = opset_imports(model.opset_import, model.ir_version)
    pending = [Part(model.graph, opsets)]
    for function in model.functions:
        imports = function.opset_import or model.opset_import
        pending.append(Part(function, opset_imports(imports, model.ir_version)))
    while pending:
        part = pending.pop()
        pending += [Part(graph, part.opsets, part) for graph in _subgraphs(part.container)]
        yield part


def _subgraphs(container: Any) -> Iterator[Any]:
    for node in container.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield attribute.g
            yield from attribute.graphs
