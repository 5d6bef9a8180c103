"""Inference for the outputs of one node: element types from operator signatures, shapes from shape rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from opshift.inference.constants import SCALAR_ATTRIBUTES
from opshift.inference.facts import FactT, InferenceScope
from opshift.inference.propagation import MAXIMUM, FactKind, Inferred
from opshift.inference.symbols import merge_claim, with_symbols
from opshift.model.element_types import BY_NAME, BY_NUMBER
from opshift.model.node import Graph, Node, Tensor, Value
from opshift.model.types import Shape
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.shape_context import ShapeContext

CONTAINER_PREFIXES = ("seq(", "optional(")
"""Prefixes of the type strings of sequences and optionals."""


def infer_types(node: Node, operator: OperatorVersion, scope: InferenceScope) -> Sequence[str | None]:
    """Return the element type of each output."""
    return [_output_type(node, position, operator, scope) for position in range(len(node.outputs))]


def infer_shapes(node: Node, operator: OperatorVersion, scope: InferenceScope) -> Inferred[Shape]:
    """Return the shapes that the operator's shape rule infers for the outputs, with symbols."""
    context = _Context(operator, node, scope, _known_shape)
    known = _apply_rule(context)
    if not any(shape is not None and None in shape for shape in known):
        return Inferred(known, context.is_cacheable)
    try:
        computed = _apply_rule(_Context(operator, node, scope, _symbolic_shape))
    except OverflowError:  # the rule uses the number of a symbol as a length
        computed = ()
    shapes = list(map(with_symbols, known, (*computed, *[None] * len(known)), node.outputs))
    is_shared = all(each.is_shared for each in shapes)
    return Inferred([each.shape for each in shapes], context.is_cacheable and is_shared)


def infer_ranks(node: Node, operator: OperatorVersion, scope: InferenceScope) -> Inferred[int]:
    """Return the rank of each output: from the ranks of the inputs, then with constants, then from shapes."""
    for reads_constants in (False, True):
        context = _Context(operator, node, scope, _shape_of_known_rank, reads_constants=reads_constants)
        found = [None if shape is None else len(shape) for shape in _apply_rule(context)]
        found += [None] * (len(node.outputs) - len(found))
        missing = [i for i, name in enumerate(node.outputs) if name and found[i] is None]
        if not missing:
            return Inferred(found, context.is_cacheable)
    for position in missing:
        shape = scope.symbolic_shape(node.outputs[position])
        found[position] = None if shape is None else len(shape)
    return Inferred(found, is_cacheable=False)


def _known_shape(scope: InferenceScope, name: str) -> Shape | None:
    return scope.shape(name)


def _symbolic_shape(scope: InferenceScope, name: str) -> Shape | None:
    return scope.symbolic_shape(name)


def _shape_of_known_rank(scope: InferenceScope, name: str) -> Shape | None:
    rank = scope.rank(name)
    return None if rank is None else (None,) * rank


def _apply_rule(context: _Context) -> Sequence[Shape | None]:
    from opshift.registry.shapes.rule_table import SHAPE_RULES  # imported only when needed

    rule = SHAPE_RULES.get(context.version.shape)
    return () if rule is None or context.node.has_attribute_references else rule(context)


def type_link(operator: OperatorVersion) -> int | None:
    """Return the position of an input that always has the element type of the first output."""
    output = _parameter_at(operator.outputs, 0)
    if output is None or output.type_attribute or not output.homogeneous or operator.name == "Constant":
        return None
    if len(operator.types_of(output)) == 1:
        return None
    shared = (i for i, each in enumerate(operator.inputs) if each.type == output.type and each.homogeneous)
    return next(shared, None)


def _types_depend_on_inputs(operator: OperatorVersion) -> bool:
    """Return whether a type of an output is neither fixed, nor stated by an attribute or a subgraph."""
    stated = operator.required_attributes
    return any(
        each.homogeneous and len(operator.types_of(each)) > 1 and each.type_attribute not in stated
        for each in operator.outputs
    )


def shape_link(operator: OperatorVersion) -> int | None:
    """Return the position of an input that always has the shape of the first output."""
    return _SHAPE_LINKS.get(operator.shape)


def rank_link(operator: OperatorVersion) -> int | None:
    """Return the position of an input that always has the rank of the first output, or `MAXIMUM`."""
    if operator.shape == "broadcast":
        return MAXIMUM  # broadcasting yields the rank of the input with the most dimensions
    from opshift.registry.shapes.rule_table import KEEPS_RANK  # the shape rules are imported only when needed

    return 0 if operator.shape in KEEPS_RANK else shape_link(operator)


_SHAPE_LINKS = {
    "same_as_first": 0,
    "all_same_as_first": 0,
    "pairwise": 0,
    "batch_normalization": 0,
    "layer_normalization": 0,
    "same_as_second": 1,
}
"""Position of the input with the shape of the first output, by the name of the shape rule."""


@lru_cache(maxsize=4096)
def _deciding_positions(operator: OperatorVersion, position: int, count: int) -> tuple[int, ...]:
    """Return the positions of the inputs, of `count`, that determine the element type of an output."""
    output = _parameter_at(operator.outputs, position)
    if output is None:
        return ()
    formals = ((index, _parameter_at(operator.inputs, index)) for index in range(count))
    return tuple(index for index, formal in formals if formal and determines_type(formal, output))


def determines_type(formal: Parameter, output: Parameter) -> bool:
    """Return whether an output has the element type of an input, always or without its type attribute."""
    return (formal.type == output.type and formal.homogeneous) or formal.name == output.absent_type


def _output_type(node: Node, position: int, operator: OperatorVersion, scope: InferenceScope) -> str | None:
    output = _parameter_at(operator.outputs, position)
    if output is None:
        return None
    if output.type_attribute and node.has_attribute_references:
        return None
    named = type_from_attribute(operator, node, output.type_attribute) if output.type_attribute else None
    if named:
        return f"seq(tensor({named}))" if operator.types_of(output)[0].startswith("seq(") else named
    if not output.homogeneous:
        return _type_from_body(node, position, scope)
    if node.op_type == "Constant" and not node.has_attribute_references:
        return type_of_constant(node)
    types = operator.types_of(output)
    if len(types) == 1:
        return _without_tensor(types[0])
    deciding = (node.inputs[each] for each in _deciding_positions(operator, position, len(node.inputs)))
    decided = next(filter(None, map(scope.element_type, filter(None, deciding))), None)
    fixed = output.absent_type if output.absent_type and "(" in output.absent_type else None
    return decided or (_without_tensor(fixed) if fixed else _container_type(types, node, scope))


def _container_type(types: Sequence[str], node: Node, scope: InferenceScope) -> str | None:
    """Return the type of an output that contains the first input, is contained in it, or equals it."""
    source = scope.element_type(node.input(0)) if node.input(0) else None
    if source is None:
        return None
    source_type = source if "(" in source else f"tensor({source})"
    if all(each.startswith(CONTAINER_PREFIXES) for each in types):
        containers = f"seq({source_type})", f"optional({source_type})"
        return next((each for each in containers if each in types), None)
    if not source_type.startswith(CONTAINER_PREFIXES):
        return None
    element = source_type.partition("(")[2].removesuffix(")")
    return next((_without_tensor(each) for each in (source_type, element) if each in types), None)


class _Context(ShapeContext):
    """Context of a node for its shape rule; cacheable if the rule reads only shapes and attributes."""

    def __init__(
        self,
        operator: OperatorVersion,
        node: Node,
        scope: InferenceScope,
        shape_of: Callable[[InferenceScope, str], Shape | None],
        *,
        reads_constants: bool = True,
    ) -> None:
        self.is_cacheable = True
        self.version = operator
        self.node = node
        self.inputs = [shape_of(scope, name) if name else None for name in node.inputs]
        self.output_count = len(node.outputs)
        self._scope = scope
        self._shape_of = shape_of
        self._reads_constants = reads_constants

    def attribute(self, name: str) -> object:
        found = self.node.attribute(name)
        if found is not None:
            return found
        declared = self.version.attributes.get(name)
        default = declared.default if declared else None
        return default.encode() if isinstance(default, str) else default

    def constant(self, position: int) -> tuple[object, ...] | None:
        if not self._reads_constants:
            return None
        self.is_cacheable = False
        name = self.node.input(position)
        found = self._scope.constant(name) if name else None
        return found.values if found else None

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        self.is_cacheable = False
        emitted, name, body = _body_output(self.node, attribute, position, self._scope)
        return self._shape_of(body, name) if body else emitted and emitted.dims


def _parameter_at(parameters: tuple[Parameter, ...], position: int) -> Parameter | None:
    if position < len(parameters):
        return parameters[position]
    last = parameters[-1] if parameters else None
    return last if last and last.option == "variadic" else None


def type_from_attribute(operator: OperatorVersion, node: Node, attribute: str) -> str | None:
    """Return the element type named by an attribute of a node, or by the default of the attribute."""
    stated = node.attribute(attribute)
    if stated is None and attribute in operator.attributes:
        stated = operator.attributes[attribute].default
    if isinstance(stated, bytes):
        return stated.decode(errors="replace").lower()
    if isinstance(stated, Tensor):
        return stated.element_type
    found = BY_NUMBER.get(stated if isinstance(stated, int) else getattr(stated, "data_type", 0))
    return found.name if found else None


def _without_tensor(type_string: str) -> str:
    element = type_string.removeprefix("tensor(").removesuffix(")")
    return element if element in BY_NAME else type_string


def type_of_constant(node: Node) -> str | None:
    """Return the element type of a Constant, without decoding its value, which may be large."""
    for name, kind, _ in SCALAR_ATTRIBUTES:
        if name in node.attributes or f"{name}s" in node.attributes:
            return kind
    value = node.attribute("value")
    if isinstance(value, Tensor):
        return value.element_type
    found = BY_NUMBER.get(getattr(value, "data_type", 0))
    return found.name if found else None


_BODY_OFFSET = {
    "If": ("then_branch", 0), "Loop": ("body", 1), "Scan": ("body", 0), "SequenceMap": ("body", 0),
}  # fmt: skip
"""Subgraph that produces the outputs of an operator, and the position of the first of them in it.

The first output of a Loop body is the condition.
"""


def _type_from_body(node: Node, position: int, scope: InferenceScope) -> str | None:
    attribute, offset = _BODY_OFFSET.get(node.op_type, ("", 0))
    emitted, name, body = _body_output(node, attribute, offset + position, scope)
    if emitted is not None:
        return emitted.type
    found = body.element_type(name) if body else None
    return f"seq(tensor({found}))" if found and node.op_type == "SequenceMap" else found


def _body_output(
    node: Node, attribute: str, position: int, scope: InferenceScope
) -> tuple[Value | None, str, InferenceScope | None]:
    """Return an output of a subgraph that an adapter emitted, or its name and the scope of a GraphProto."""
    graph = node.attribute(attribute)
    if isinstance(graph, Graph) and position < len(graph.outputs):
        return graph.outputs[position], "", None
    if not hasattr(graph, "output") or position >= len(graph.output):
        return None, "", None
    return None, graph.output[position].name, scope.child(graph)


def _claimed_rank(scope: InferenceScope, name: str) -> int | None:
    claimed = scope.claimed_shape(name)
    return None if claimed is None else len(claimed)


def _first_known(inferred: FactT | None, claimed: FactT | None) -> FactT | None:
    return claimed if inferred is None else inferred


TYPES: FactKind[str] = FactKind(
    query=lambda scope, name: scope.element_type(name),
    declared=lambda scope, name: scope.declared_type(name),
    claimed=lambda scope, name: scope.declared_type(name),
    merge=lambda inferred, claimed: _first_known(claimed, inferred),
    trusts_claims=True,
    asks_inputs=_types_depend_on_inputs,
    link=type_link,
    infer=lambda node, operator, scope: Inferred(infer_types(node, operator, scope), True),
)

SHAPES: FactKind[Shape] = FactKind(
    query=lambda scope, name: scope.symbolic_shape(name),
    declared=lambda scope, name: scope.declared_shape(name),
    claimed=lambda scope, name: scope.claimed_shape(name),
    merge=merge_claim,
    trusts_claims=False,
    asks_inputs=lambda operator: True,
    link=shape_link,
    infer=infer_shapes,
)

RANKS: FactKind[int] = FactKind(
    query=lambda scope, name: scope.rank(name),
    declared=lambda scope, name: scope.declared_rank(name),
    claimed=_claimed_rank,
    merge=_first_known,
    trusts_claims=False,
    asks_inputs=lambda operator: True,
    link=rank_link,
    infer=infer_ranks,
)
