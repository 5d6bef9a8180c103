"""Nodes that compute in another element type, between casts, for runtimes without a kernel for their own."""

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters.core.equivalents import Equivalent
from opshift.adapters.core.rewriter import Rewriter, StepFunction
from opshift.adapters.core.type_guard import emit_in_types, unsupported_types
from opshift.model.element_types import type_string
from opshift.model.node import Node
from opshift.model.operator_ids import OperatorId


class TypeBridge(NamedTuple):
    """Element type that replaces another one of a type variable in the nodes of an operator version."""

    operator: OperatorId
    variable: str
    element_type: str
    replacement: str

    def __str__(self) -> str:
        return f"{self.operator}: {self.variable} in {self.replacement} instead of {self.element_type}"


Unwanted = str | TypeBridge | Equivalent
"""Unwanted part of a model: a domain, an operator such as `ai.onnx.Gelu`, a type of an operator version, or a
version that another domain replaces."""


def make_bridge_step(bridges: Sequence[TypeBridge]) -> StepFunction:
    """Return the step that casts around nodes with the types of some bridges of one operator version."""
    replaced = {each.variable: frozenset({type_string(each.element_type)}) for each in bridges}
    replacements = {each.variable: each.replacement for each in bridges}

    def bridge(node: Node, out: Rewriter) -> None:
        found = unsupported_types(node, replaced, out)
        if not found:
            out.replace(node)
            return
        types = {variable: (element, replacements[variable]) for variable, (_, element) in found.items()}
        if ("double", "float") in types.values():
            out.allow("approximate", f"{out.source.id} computes in float instead of double")
        emit_in_types(node, types, out)

    return bridge
