"""Nodes that a plan refuses, with messages that name only values of the user's model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING

from opshift.converter.options import Options
from opshift.converter.refusals import Refusal
from opshift.converter.unknown_shapes import UnknownShapeRemedies, exceeded_remedy, inference_advice
from opshift.inference.function_scope import FunctionTable
from opshift.inference.scope import Scope
from opshift.model.errors import (
    UNKNOWN_CONSTANT,
    UNKNOWN_ELEMENT_TYPE,
    UNKNOWN_SHAPE,
    NodeError,
    UnknownShape,
)
from opshift.model.graphs import node_place
from opshift.model.messages import NodeProto
from opshift.model.operator_ids import canonical_domain
from opshift.registry.errors import NotYetIntroduced
from opshift.registry.explanations import refusal_cause
from opshift.rewriting.workspace import FreshNames

if TYPE_CHECKING:
    from opshift.converter.plan.node_analysis import NodeAnalysis
    from opshift.inference.survey import ContainerSurvey

INTERMEDIATE = "an intermediate value"
"""Text in messages for a value that a conversion step created: users do not know the value's name."""

UNKNOWN_IN_CALLS = (
    UNKNOWN_CONSTANT, UNKNOWN_ELEMENT_TYPE, UNKNOWN_SHAPE, "function.calls-differ", "function.reference"
)  # fmt: skip
"""Causes of refusals that inference for each call of a function, or a copy of the function, may avoid."""


class RefusedNodes:
    """Nodes of one model that cannot be converted, and the scopes of these nodes."""

    def __init__(
        self,
        options: Options,
        names: FreshNames,
        node_analysis: NodeAnalysis,
        functions: FunctionTable | None,
    ) -> None:
        self._nodes: list[tuple[NodeError, NodeProto, ContainerSurvey]] = []
        self._options = options
        self._names = names
        self._node_analysis = node_analysis
        self._functions = functions
        self._unknown_shapes = UnknownShapeRemedies(inference_advice(infers_shapes=options.infer_shapes))

    def add(self, error: NodeError, proto: NodeProto, surveyed: ContainerSurvey) -> None:
        """Add a node with the error of its rewrite."""
        self._nodes.append((error.with_traceback(None), proto, surveyed))

    @property
    def scopes(self) -> list[Scope]:
        """Scope of each refused node."""
        return [surveyed.scope for _, _, surveyed in self._nodes]

    def refusals(self) -> Iterator[Refusal]:
        """Yield a `Refusal` for each added node."""
        for each in self._nodes:
            yield self._refusal(*each)

    def _refusal(self, error: NodeError, proto: NodeProto, surveyed: ContainerSurvey) -> Refusal:
        """Return the refusal of a node; its reason and remedy name only values of the model."""
        scope = surveyed.scope
        created = self._names.created
        reason = _replace_names(error.reason, created, INTERMEDIATE)
        reason = re.sub(f"{INTERMEDIATE}(, {INTERMEDIATE})+", "intermediate values", reason)
        remedy, code = error.remedy, error.code
        if isinstance(error, UnknownShape):
            remedy = self._unknown_shapes.remedy(error, scope, proto.input)
        elif code == UNKNOWN_CONSTANT and reason != error.reason:
            # a step computes the value from shapes: it is constant if the shapes are declared
            remedy, code = self._unknown_shapes.remedy_of_inputs(scope, proto.input), UNKNOWN_SHAPE
        elif _replace_names(remedy, created, "") != remedy:
            remedy = "declare the types of the inputs of the node, in graph inputs or with a value_info"
        callers = self._functions.call_facts_of(scope) if self._functions else None
        if callers is not None and not callers.calls:
            reason, remedy = f"{reason}; nothing calls the function", "remove the function"
            code = "function.uncalled"
        elif self._functions and self._functions.exceeds_limit and code in UNKNOWN_IN_CALLS:
            # In graphs, the search for the causes of an unknown shape already considers limits.
            is_complete = callers is None and code == UNKNOWN_SHAPE
            remedy = remedy if is_complete else exceeded_remedy(remedy)
        if isinstance(error, NotYetIntroduced) and self._is_unresolved(proto, scope):
            remedy = ""  # the remedy of the error names an opset of the import, not of the target
        remedy = remedy or refusal_cause(code).remedy
        operator = self._operator_name(proto, scope)
        domain = canonical_domain(proto.domain)
        target = self._options.target.opsets.get(domain) or scope.opsets.get(domain, 0)
        subject = error.subject or _replace_names(reason, {*proto.input, *proto.output}, "'...'")
        place, nearest = node_place(surveyed.path, proto), error.nearest
        return Refusal(place, operator, reason, remedy, code, subject, target, nearest)

    def _operator_name(self, proto: NodeProto, scope: Scope) -> str:
        """Return the operator version such as `ai.onnx.Clip:6`, or domain and name of an unknown operator."""
        registry = self._options.registry
        domain = canonical_domain(proto.domain)
        opset = scope.opsets.get(domain, 0)
        if self._is_unresolved(proto, scope) or not registry.has(proto.op_type, opset, domain):
            return f"{domain}.{proto.op_type}"
        return str(registry.get_schema(proto.op_type, opset, domain).id)

    def _is_unresolved(self, proto: NodeProto, scope: Scope) -> bool:
        """Return whether the opset imports lack the operator of a node."""
        opset = scope.opsets.get(canonical_domain(proto.domain), 0)
        return (proto.domain, proto.op_type, opset) in self._node_analysis.unresolved


def _replace_names(text: str, names: Set[str], replacement: str) -> str:
    """Replace the quoted names in a message that are in `names`, with their quotes."""
    return re.sub(r"'([^']*)'", lambda found: replacement if found[1] in names else found[0], text)
