"""Workspace of one graph or function: what its conversion adds to the model."""

from __future__ import annotations

from opshift.converter.options import Allowances
from opshift.inference.scope import Scope
from opshift.model.fresh_names import FreshNames
from opshift.model.node import Graph, Node, Tensor
from opshift.model.tensors import pack_tensor
from opshift.registry.steps import Allow


class Workspace:
    """Names, constants and allowances that the steps of one graph's nodes request.

    Values that steps create become available to inference: the next step may query them.

    Attributes:
        scope: facts about the graph or function.
        allowances: inexact conversions that the caller allows.
    """

    def __init__(self, scope: Scope, names: FreshNames, allowances: Allowances) -> None:
        self.scope = scope
        self.allowances = allowances
        self._names = names
        self._constant_names: dict[tuple[str, tuple[int, ...], bytes | tuple[bytes, ...]], str] = {}

    def fresh(self, hint: str) -> str:
        """Return an unused value name that starts with a hint."""
        return self._names.fresh(hint)

    def add_constant(self, tensor: Tensor) -> str:
        """Add a constant and return its name; identical constants share one name.

        Raises:
            CannotConvert: the element type cannot represent the values.
        """
        # Keyed by the packed bytes: as numbers, 0.0 equals -0.0 and NaN differs from itself.
        key = (tensor.element_type, tensor.dims, pack_tensor(tensor))
        found = self._constant_names.get(key)
        if found is None:
            found = self._constant_names[key] = self.fresh("const")
            self.scope.add_constant(found, tensor)
        return found

    def allow(self, kind: Allow, reason: str) -> bool:
        """Return whether the caller allows an inexact conversion; if so, record its use."""
        return self.allowances.allow(kind, reason)

    def add_emitted(self, node: Node, opset: int) -> None:
        """Make the outputs of an emitted node available to inference."""
        self.scope.add_emitted(node, opset, self._names.created)

    def add_graph(self, graph: Graph) -> None:
        """Make the values of an emitted graph available to inference."""
        for value in graph.inputs:
            self.scope.declare(value)
        for each in (*graph.nodes, *graph.nodes_after):
            self.add_emitted(each.node, each.opset)
