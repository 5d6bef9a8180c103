"""Patterns of nodes that compute the results of an operator, and their JSON representation.

A slot of a node is the name of a formal input or of an attribute. ONNX has moved several attributes to inputs
of the same name, such as `axes` of ReduceMean, so one pattern covers both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from opshift.model.element_types import round_to_float32
from opshift.model.operator_ids import canonical_domain, model_domain
from opshift.model.shared_data import ReadOnlyDict


class InputRef(NamedTuple):
    """Input of the operator, by position."""

    position: int


class NodeRef(NamedTuple):
    """Output of a node of the pattern: position of the node, and position among its outputs."""

    node: int
    output: int


class Hole(NamedTuple):
    """Element of a constant, computed from an attribute of the operator by a function in `FUNCTIONS`.

    The attribute may be a quotient of two, such as `q_num_heads / kv_num_heads`.
    """

    attribute: str
    function: str = "same"


Element: TypeAlias = "float | int | str | bool | Hole | None"
"""Element of a constant; `None` for any number."""


class Constant(NamedTuple):
    """Constant input or attribute; `elements` is `None` if any elements match.

    `whole` names a list attribute that holds all elements. With `is_filled`, any number of elements match if
    all equal the only one in `elements`.
    """

    elements: tuple[Element, ...] | None = None
    whole: str = ""
    is_filled: bool = False


class AnyValue(NamedTuple):
    """Input that does not affect the result, such as the shape input of a Reshape to a known shape."""


Ref: TypeAlias = "InputRef | NodeRef | Constant | AnyValue"


class PatternNode(NamedTuple):
    """Node of a pattern, with the content of its slots."""

    op_type: str
    domain: str
    slots: Mapping[str, Ref]


class Pattern(NamedTuple):
    """Nodes that compute the results of an operator, in topological order.

    Attributes:
        domain: domain of the operator.
        operator: name of the operator.
        variant: opset for which the operator is expanded, `BODY` for its function body, or the position
            among the forms in its definition.
        is_form: whether the operator's definition lists the pattern; an expansion verifies other patterns.
        approximate: sentence about the difference in rounding; empty if the results are equal.
        attributes: attributes of the operator that the pattern implies, by name.
        nodes: the nodes.
        outputs: output of a node for each output of the operator, by position; position 0 always exists.
        shapes: dimensions that values must have, see `RecognizedForm`.
        types: element types that the first input may have; empty for all.
        copies: attributes that constants do not determine, each with the attribute that it equals.
        flattened: positions of constant inputs that are reshaped to one dimension.
        versions: `since_version` of each operator version with this pattern; empty for all versions.
    """

    domain: str
    operator: str
    variant: int
    is_form: bool
    approximate: str
    attributes: Mapping[str, Any]
    nodes: tuple[PatternNode, ...]
    outputs: Mapping[int, NodeRef]
    shapes: tuple[tuple[InputRef | NodeRef, tuple[int | str, ...]], ...] = ()
    types: tuple[str, ...] = ()
    copies: Mapping[str, str] = ReadOnlyDict()
    flattened: tuple[int, ...] = ()
    versions: tuple[int, ...] = ()

    @property
    def anchor(self) -> PatternNode:
        """Node that computes the first output."""
        return self.nodes[self.outputs[0].node]


BODY: Final = 0
"""Variant of a pattern that is derived from the function body of the operator."""


class Function(NamedTuple):
    """Function from an attribute to a constant, and its inverse."""

    apply: Callable[[float], float]
    solve: Callable[[float], float]


FUNCTIONS: Final = {
    "same": Function(lambda value: value, lambda value: value),
    "negative": Function(lambda value: -value, lambda value: -value),
    "reciprocal": Function(lambda value: 1 / value, lambda value: 1 / value),
    "root": Function(math.sqrt, lambda value: value * value),
    "root of reciprocal": Function(lambda value: math.sqrt(1 / value), lambda value: 1 / (value * value)),
    "square": Function(lambda value: value * value, math.sqrt),
}


def solved(element: float, function: str, kind: str) -> float | int | None:
    """Return the attribute value of type `kind` that the function maps to `element`, or `None`."""
    try:
        value = FUNCTIONS[function].solve(element)
    except (ArithmeticError, ValueError):
        return None
    if kind == "INT":
        # No attribute stores other numbers, such as infinity.
        return int(value) if -(2**63) <= value < 2**63 and value == int(value) else None
    return round_to_float32(float(value))


def to_data(patterns: Iterable[Pattern]) -> dict[str, Any]:
    """Return patterns as JSON data: equal nodes and shapes of several patterns are written once."""
    nodes: dict[str, int] = {}
    shapes: dict[str, int] = {}
    rows = [_pattern_data(each, nodes, shapes) for each in patterns]
    return {"nodes": [*map(json.loads, nodes)], "shapes": [*map(json.loads, shapes)], "patterns": rows}


def _pattern_data(pattern: Pattern, nodes: dict[str, int], shapes: dict[str, int]) -> list[Any]:
    """Return a pattern as JSON data with positions in `nodes` and `shapes`; add new members to these.

    Each position of a node is relative to the previous one.
    """

    def number(member: list[Any], known: dict[str, int]) -> int:
        return known.setdefault(json.dumps(member), len(known))

    outputs = {str(position): list(ref) for position, ref in pattern.outputs.items()}
    attributes = {
        name: ["b", value.decode()] if isinstance(value, bytes) else value
        for name, value in pattern.attributes.items()
    }
    positions = [number(_node_data(each), nodes) for each in pattern.nodes]
    return [
        *pattern[:5],
        attributes,
        [after - before for before, after in pairwise((0, *positions))],  # mostly 1, which compresses well
        outputs,
        [number([list(ref), list(dims)], shapes) for ref, dims in pattern.shapes],
        list(pattern.types),
        dict(pattern.copies),
        list(pattern.flattened),
        list(pattern.versions),
    ]


def _node_data(node: PatternNode) -> list[Any]:
    slots = {slot: _ref_data(ref) for slot, ref in node.slots.items()}
    return [node.op_type, model_domain(node.domain), slots]


def _ref_data(ref: Ref) -> list[Any]:
    if isinstance(ref, Constant):
        elements = None if ref.elements is None else [_element_data(each) for each in ref.elements]
        options = (ref.whole, ref.is_filled)
        return ["c", elements, *(options if any(options) else ())]  # omit defaults: the wheel is smaller
    return [*ref]


def _element_data(element: Element) -> Any:
    if isinstance(element, Hole):
        return list(element)
    if isinstance(element, float) and not math.isfinite(element):
        return ["", repr(element)]
    return element


def from_data(data: Mapping[str, Any]) -> list[Pattern]:
    """Return the patterns that `to_data` wrote as JSON data."""
    nodes = [
        PatternNode(op_type, canonical_domain(domain), {slot: _ref(ref) for slot, ref in slots.items()})
        for op_type, domain, slots in data["nodes"]
    ]
    shapes = [(_value_ref(ref), tuple(dims)) for ref, dims in data["shapes"]]
    return [_pattern(row, nodes, shapes) for row in data["patterns"]]


def _pattern(
    row: list[Any],
    all_nodes: Sequence[PatternNode],
    all_shapes: Sequence[tuple[InputRef | NodeRef, tuple[int | str, ...]]],
) -> Pattern:
    nodes: list[int]
    shapes: list[int]
    *first, nodes, outputs, shapes, types, copies, flattened, versions = row
    domain, operator, variant, is_form, approximate, attributes = first
    return Pattern(
        domain,
        operator,
        variant,
        is_form,
        approximate,
        {name: each[1].encode() if isinstance(each, list) else each for name, each in attributes.items()},
        tuple(all_nodes[each] for each in accumulate(nodes)),
        {int(position): NodeRef(*ref) for position, ref in outputs.items()},
        tuple(all_shapes[each] for each in shapes),
        tuple(types),
        copies,
        tuple(flattened),
        tuple(versions),
    )


def _ref(data: list[Any]) -> Ref:
    if data and data[0] == "c":
        elements = None if data[1] is None else tuple(map(_element, data[1]))
        return Constant(elements, *data[2:])
    return _value_ref(data) if data else AnyValue()


def _value_ref(data: list[Any]) -> InputRef | NodeRef:
    return InputRef(*data) if len(data) == 1 else NodeRef(*data)


def _element(data: Any) -> Element:
    if not isinstance(data, list):
        element: Element = data
        return element
    return Hole(*data) if data[0] else float(data[1])
