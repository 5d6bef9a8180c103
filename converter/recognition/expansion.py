"""Expand a node into its function body, or by a conversion to an older opset and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from opshift.converter.apply import apply_conversion
from opshift.converter.options import Options
from opshift.converter.plan.planner import plan_model
from opshift.converter.recognition.patterns import BODY, InputRef, NodeRef
from opshift.inference.root_scopes import root_scopes
from opshift.inference.scope import Scope
from opshift.model.attributes import ATTRIBUTE_TYPES, write_attribute
from opshift.model.errors import OpshiftError
from opshift.model.messages import IR_VERSION, GraphProto, ModelProto
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, model_domain
from opshift.model.tensors import read_tensor, write_tensor
from opshift.model.types import Shape, fill_type
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.steps import Allow

MAX_NODES = 150
"""Number of nodes after which an expansion is abandoned as too large for a pattern."""


class InputFact(NamedTuple):
    """Element type and dimensions of an input; equal negative numbers are equal unknown sizes."""

    element_type: str
    dims: Shape | None


class Call(NamedTuple):
    """Node of an operator, with the facts about its inputs on which its expansion depends.

    Attributes:
        operator: operator version.
        opset: opset of the default domain.
        attributes: attributes by name.
        inputs: facts about each input, or its value; `None` for an omitted input.
        outputs: for each output of the operator, whether the node has it.
    """

    operator: OperatorVersion
    opset: int
    attributes: tuple[tuple[str, Any], ...]
    inputs: tuple[InputFact | Tensor | None, ...]
    outputs: tuple[bool, ...]

    def model(self) -> ModelProto:
        """Return a model with only this node; values are named `in0`, `in1`, ... and `out0`, `out1`, ..."""
        model = ModelProto(ir_version=IR_VERSION)
        opsets = {self.operator.domain: self.operator.since_version, DEFAULT_DOMAIN: self.opset}
        for domain, opset in opsets.items():
            model.opset_import.add(domain=model_domain(domain), version=opset)
        node = model.graph.node.add(op_type=self.operator.name, domain=model_domain(self.operator.domain))
        for name, value in self.attributes:
            write_attribute(
                node.attribute.add(), name, ATTRIBUTE_TYPES[self.operator.attributes[name].type], value
            )
        for position, fact in enumerate(self.inputs):
            node.input.append("" if fact is None else f"in{position}")
            if fact is not None:
                _add_input(model.graph, f"in{position}", fact)
        for position, is_present in enumerate(self.outputs):
            node.output.append(f"out{position}" if is_present else "")
            if is_present:
                model.graph.output.add(name=f"out{position}")
        return model


def _add_input(graph: GraphProto, name: str, fact: InputFact | Tensor) -> None:
    if isinstance(fact, Tensor):
        write_tensor(graph.initializer.add(), fact, name)
        return
    proto = graph.input.add(name=name).type
    fill_type(proto, fact.element_type, None)
    if fact.dims is not None:
        proto.tensor_type.shape.SetInParent()
        for size in fact.dims:
            dim = proto.tensor_type.shape.dim.add()
            if size is not None and size >= 0:
                dim.dim_value = size
            elif size is not None:
                dim.dim_param = f"d{-size}"


class SubgraphDigest(bytes):
    """Digest of the nodes of a subgraph without names; the slot of a subgraph attribute contains it."""


class ExactNode(NamedTuple):
    """Node of an expansion; a slot (input or attribute) holds an InputRef, NodeRef, tensor or other value."""

    op_type: str
    domain: str
    slots: Mapping[str, Any]


class ExactGraph(NamedTuple):
    """Expansion of a call: nodes in topological order, and the node output for each output of the call."""

    nodes: tuple[ExactNode, ...]
    outputs: Mapping[int, NodeRef]

    @property
    def has_subgraphs(self) -> bool:
        """Whether a node has a subgraph."""
        return any(isinstance(each, SubgraphDigest) for node in self.nodes for each in node.slots.values())

    def size_nodes(self) -> frozenset[int]:
        """Return the positions of nodes that depend on the sizes of inputs only, not on their elements."""
        found: set[int] = set()
        for index, node in enumerate(self.nodes):
            refs = [each for each in node.slots.values() if isinstance(each, NodeRef | InputRef)]
            if node.op_type in ("Shape", "Size") or (
                refs and all(isinstance(each, NodeRef) and each.node in found for each in refs)
            ):
                found.add(index)
        return frozenset(found)


def expand(
    call: Call, variant: int, registry: Registry, allow: frozenset[Allow] = frozenset()
) -> ExactGraph | None:
    """Expand a call by its function body (`BODY`) or via opset `variant`; `None` if that is impossible."""
    model = call.model()
    try:
        if variant == BODY:
            removed = f"{call.operator.domain}.{call.operator.name}"
            options = Options.of(None, without=removed, allow=allow, inplace=True, registry=registry)
            _convert_in_place(model, options)
        else:
            _convert(model, variant, allow, registry)
            _convert(model, call.opset, allow, registry)
    except (OpshiftError, ValueError):
        return None
    return exact_graph(model, call, registry)


def _convert(model: ModelProto, opset: int, allow: frozenset[Allow], registry: Registry) -> None:
    options = Options.of(opset, allow=allow, ir_version="keep", inplace=True, registry=registry)
    _convert_in_place(model, options)


def _convert_in_place(model: ModelProto, options: Options) -> None:
    result, plan = plan_model(model, options)
    plan.require_possible()
    apply_conversion(plan, result, options)
    if result is not model:
        model.CopyFrom(result)


def exact_graph(model: ModelProto, call: Call, registry: Registry) -> ExactGraph | None:
    """Return the nodes of an expanded model; `None` if this is impossible, or if the operator remains."""
    scope = next(root_scopes(model, model, registry))[0]
    inputs = {f"in{index}": index for index, each in enumerate(call.inputs) if each is not None}
    names = {index: f"out{index}" for index, is_present in enumerate(call.outputs) if is_present}
    return _Reader(scope, inputs, call.operator).graph(names)


class _Reader:
    """Reader of the nodes of a graph, backwards from its outputs.

    Attributes:
        captured: names of values that a subgraph reads from enclosing graphs; `None` outside of subgraphs.
    """

    def __init__(
        self,
        scope: Scope,
        inputs: Mapping[str, int],
        excluded: OperatorVersion | None = None,
        captured: list[str] | None = None,
    ) -> None:
        self._scope, self._inputs, self._excluded = scope, inputs, excluded
        self.captured = captured
        self._nodes: list[ExactNode] = []
        self._known: dict[str, Any] = {}

    def graph(self, outputs: Mapping[int, str]) -> ExactGraph | None:
        found: dict[int, NodeRef] = {}
        for position, name in outputs.items():
            ref = self._ref(name)
            if isinstance(ref, NodeRef):
                found[position] = ref
        return ExactGraph(tuple(self._nodes), found) if 0 in found else None

    def text(self, outputs: Iterable[str]) -> str | None:
        """Return the content of a subgraph as text without names; `None` if a node cannot be read."""
        refs = [self._ref(name) for name in outputs]
        return None if None in refs else repr((refs, self._nodes))

    def _ref(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Any:
        if name in self._inputs:
            return InputRef(self._inputs[name])
        record = self._scope.producing_records.get(name)
        if self.captured is not None and record is None and not self._scope.is_local(name):
            self.captured.append(name)
            return f"captured {len(self.captured) - 1}"
        constant = self._scope.constant(name)
        if constant is not None:
            return constant
        if record is None or len(self._nodes) > MAX_NODES or self._scope.is_call(record):
            return None
        slots = node_slots(self._scope.node_of(record), self._scope)
        operator = canonical_domain(record[1]), record[2]
        excluded = self._excluded
        if slots is None or (excluded and operator == (excluded.domain, excluded.name)):
            return None
        content: dict[str, Any] = {}
        for slot, value in slots.items():
            content[slot] = self._ref(value.name) if isinstance(value, ValueName) else value
            if content[slot] is None:
                return None
        self._nodes.append(ExactNode(record[2], canonical_domain(record[1]), content))
        index = len(self._nodes) - 1
        for position, each in enumerate(record[4]):
            if each:
                self._known[each] = NodeRef(index, position)
        return self._known[name]


class ValueName(NamedTuple):
    """Content of a slot that is an input: the name of the value that the node reads."""

    name: str


def input_slots(inputs: Sequence[str], operator: OperatorVersion) -> Iterator[tuple[str, str]]:
    """Yield the slot and the name of each input of a node."""
    formals = operator.inputs
    for position, name in enumerate(inputs):
        if name:
            formal = formals[min(position, len(formals) - 1)]
            yield formal.name if formal.option != "variadic" else f"{formal.name}:{position}", name


def node_slots(node: Node, scope: Scope) -> dict[str, Any] | None:
    """Return the inputs and attributes of a node by slot: the name of the formal input or attribute.

    Inputs are ValueNames. Attributes are numbers, bytes, tuples or tensors, or a SubgraphDigest. The
    values that a subgraph reads from enclosing graphs are ValueNames in slots such as `body:0`. The result is
    `None` for unknown operators, references to function attributes, and unreadable tensors or subgraphs.
    """
    operator = scope.operator(node.op_type, node.domain)
    if operator is None or node.has_attribute_references or (node.inputs and not operator.inputs):
        return None
    slots: dict[str, Any] = {slot: ValueName(name) for slot, name in input_slots(node.inputs, operator)}
    for name in node.attributes:
        value = node.attribute(name)
        if operator.holds_graphs and hasattr(value, "node"):
            content = _subgraph_slots(name, value, scope)
            if content is None:
                return None
            slots |= content
            continue
        value = read_tensor(value) if hasattr(value, "data_type") else value
        if value is None:
            return None
        slots[name] = value
    return slots


def _subgraph_slots(slot: str, graph: GraphProto, scope: Scope) -> dict[str, Any] | None:
    """Return the slots of a subgraph in the attribute `slot`, or `None`, see `node_slots`."""
    inputs = {each.name: position for position, each in enumerate(graph.input)}
    captured: list[str] = []
    text = _Reader(scope.child(graph), inputs, captured=captured).text(each.name for each in graph.output)
    if text is None:
        return None
    outer = {f"{slot}:{position}": ValueName(name) for position, name in enumerate(captured)}
    return {slot: SubgraphDigest(sha256(text.encode()).digest()), **outer}
