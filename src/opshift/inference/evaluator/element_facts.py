"""Facts about the elements of the values of one scope; each value is evaluated once."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

from opshift.inference.constants import FLOAT_INTEGER_RANGES, has_several_values, read_constant_node
from opshift.inference.evaluator.elements import Elements, is_constant
from opshift.inference.evaluator.rule_table import (
    EVALUATED,
    MAX_ELEMENTS,
    SHAPE_READERS,
    SMALL_SIZE,
    EvaluatedNode,
    evaluate,
)
from opshift.inference.facts import (
    Answers,
    FactQuestion,
    InferenceScope,
    ListedSize,
    Producer,
    Unanswered,
    answered,
)
from opshift.inference.symbols import is_symbol
from opshift.model.attributes import TENSOR
from opshift.model.element_types import BY_NAME
from opshift.model.graphs import NodeRecord, is_graph
from opshift.model.messages import TensorProto
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import element_count, read_sparse_tensor, read_tensor
from opshift.model.types import shape_of

FLOAT_NUMBERS = tuple(BY_NAME[name].number for name in FLOAT_INTEGER_RANGES)
"""Numbers of float16, bfloat16, float and double in `TensorProto.DataType`."""

MAX_COMPARED_ELEMENTS = 1024
"""Maximum number of elements of a tensor in a cache key; larger tensors are compared by `id`."""

MAX_WALK = 64
"""Maximum number of values that `_reads_sizes` visits; bounds the time, because each Cast starts a search."""


def rounds_sizes(node: Node, scope: InferenceScope) -> bool:
    """Return whether a node converts sizes to floats, and `_has_dynamic_inputs` is true for the model.

    Floats have no symbols, so the result is hardly ever known. Exporters compute the scales of each Resize
    like this, and inferring the shapes for them would take most of the time of a conversion.
    """
    is_cast = node.op_type == "Cast" and node.attribute("to") in FLOAT_NUMBERS
    return is_cast and _has_dynamic_inputs(scope) and _reads_sizes(node.input(0), scope)


def _has_dynamic_inputs(scope: InferenceScope) -> bool:
    """Return whether a main graph input has an unknown shape, or an unknown size after dimension 0."""
    if scope.evaluation.has_dynamic_inputs is None:
        root = scope
        while root.parent is not None:
            root = root.parent
        inputs = root.container.input if is_graph(root.container) else ()
        shapes = [shape_of(value.type) for value in inputs]
        scope.evaluation.has_dynamic_inputs = any(shape is None or None in shape[1:] for shape in shapes)
    return scope.evaluation.has_dynamic_inputs


def _reads_sizes(name: str, scope: InferenceScope) -> bool:
    """Return whether a value is computed from a Shape or Size node, or the search exceeds `MAX_WALK`."""
    pending, seen = [name], {name}
    while pending and len(seen) <= MAX_WALK:
        record = scope.producing_records.get(pending.pop())
        if record is None or record[2] not in EVALUATED:
            continue
        if record[2] in ("Shape", "Size"):
            return True
        pending += [each for each in record[3] if each not in seen]
        seen.update(record[3])
    return bool(pending)


_MISSING: Any = object()


class LargeTensor(NamedTuple):
    """Tensor of the model with too many elements to keep in memory: each query decodes it again."""

    proto: TensorProto


Known = Elements | LargeTensor | None


def defining_scope(scope: InferenceScope, name: str) -> InferenceScope | None:
    """Return the scope that defines a value: `scope` or an enclosing one; `None` if there is none."""
    current: InferenceScope | None = scope if name else None
    while current is not None and not current.is_local(name):
        current = current.parent
    return current


def computing_node(scope: InferenceScope, name: str) -> Producer | None:
    """Return the producer of a local value that equals its result in every run; otherwise `None`.

    A Gradient node may evaluate the graph with other tensors for the values in its attribute `xs`.
    """
    return None if name in scope.variables else scope.producer(name)


class ElementFacts(Answers[Elements | LargeTensor]):
    """Elements of the values of one scope: constants, and values computed from constants and shapes.

    Each query passes the scope that defines the value: storing the scope would form a reference cycle.
    """

    def __init__(self) -> None:
        super().__init__()
        self._constants: dict[str, Elements | None] = {}
        """Elements of evaluated values; `None` for a value with elements that are not constant."""

    def constant(self, name: str, scope: InferenceScope) -> Elements | None:
        """Return the elements of a value if they are the same in every run, else `None`."""
        if name in self._constants:
            return self._constants[name]
        found = self.elements(name, scope)
        if name not in self._known or isinstance(self._known[name], LargeTensor):
            return found  # an added constant or a tensor of the model: all elements are constant
        self._constants[name] = found if found is not None and is_constant(found) else None
        return self._constants[name]

    def elements(self, name: str, scope: InferenceScope) -> Elements | None:
        """Return the elements of a value; `None` if all are unknown.

        Raises:
            Unanswered: a rule needs the elements, and another node has to be evaluated first.
        """
        return _opened_tensor(self._evaluated_elements(name, scope))

    def elements_or_id(self, name: str, scope: InferenceScope) -> Elements | int | None:
        """Return the elements of a value, or the `id` of a tensor with many elements; `None` if unknown."""
        found = self._evaluated_elements(name, scope)
        if isinstance(found, LargeTensor):
            return id(found.proto)
        return id(found) if found is not None and len(found.values) > MAX_COMPARED_ELEMENTS else found

    def _evaluated_elements(self, name: str, scope: InferenceScope) -> Known:
        added = scope.added_constants.get(name)
        if added is not None:
            return added
        found = self.known(name, scope)
        if found is _MISSING:
            if scope.evaluation.is_running:
                raise Unanswered(FactQuestion(self, name, scope))
            scope.evaluation.answer(self, name, scope)
            found = self._known[name]
        known: Known = found
        return known

    def known(self, name: str, scope: InferenceScope) -> Any:
        """Return the elements or a `LargeTensor`; `None` if unknown, `_MISSING` if not evaluated yet."""
        found = self._known.get(name, _MISSING)
        if found is _MISSING:
            found = _stored_elements(name, scope)
            if found is not _MISSING:
                self._known[name] = found
        return found

    def forget(self, names: set[str]) -> None:
        """Remove the facts about values."""
        super().forget(names)
        for name in self._constants.keys() & names:
            del self._constants[name]

    def visit(self, name: str, scope: InferenceScope) -> Iterator[FactQuestion]:
        """Evaluate the node that produces a value; yield each question that has to be answered first."""
        record = scope.producing_records.get(name)
        names = ((), ()) if record is None else record[3:]
        producer = yield from answered(lambda: scope.producer(name), scope, *names)
        if producer is None or producer.operator is None or not _has_rule(producer.node):
            is_constant_node = producer is not None and _is_standard(producer.node, "Constant")
            self._known[name] = (
                _constant_of_node(producer.node, scope) if producer and is_constant_node else None
            )
            return
        inputs = (
            None if rounds_sizes(producer.node, scope) else (yield from self._inputs(producer.node, scope))
        )
        if inputs is None:
            self._known[name] = _forwarded(producer.node, scope)
            return
        node = EvaluatedNode(producer.node, producer.operator, scope, inputs)
        outputs = yield from answered(
            lambda: evaluate(node), scope, producer.node.inputs, producer.node.outputs
        )
        self._record_outputs(name, producer, outputs, scope)

    def _inputs(
        self, node: Node, scope: InferenceScope
    ) -> Generator[FactQuestion, None, list[Elements | None] | None]:
        """Return the elements of a node's inputs; `None` if unknown inputs make the outputs unknown."""
        needed = SHAPE_READERS.get(node.op_type, range(len(node.inputs)))
        found: list[Elements | None] = [None] * len(node.inputs)
        sources = [
            (each, node.inputs[each]) for each in needed if each < len(node.inputs) and node.inputs[each]
        ]
        scopes = {name: defining_scope(scope, name) for _, name in sources}
        # Check first the inputs that need no evaluation: most chains of unknown values end here.
        if not _may_be_known([_elements_so_far(name, scopes[name]) for _, name in sources], node):
            return None
        for position, name in sources:
            owner = scopes[name]
            while True:
                known = _elements_so_far(name, owner)
                if known is not _MISSING or owner is None:
                    break
                yield FactQuestion(owner.element_facts, name, owner)
            found[position] = known
            if known is None and node.op_type != "Concat":
                return None
        return found

    def _record_outputs(
        self, name: str, producer: Producer, outputs: Sequence[Elements | None], scope: InferenceScope
    ) -> None:
        for position, output in enumerate(producer.node.outputs):
            if output == name or (
                output and output not in self._known and output not in scope.emitted_producers
            ):
                self._known[output] = outputs[position] if position < len(outputs) else None


def _opened_tensor(known: Known) -> Elements | None:
    return read_tensor(known.proto) if isinstance(known, LargeTensor) else known


def _elements_so_far(name: str, scope: InferenceScope | None) -> Any:
    """Return the elements of an input; `None` if unknown or large, `_MISSING` if not evaluated yet."""
    if scope is None:
        return None
    added = scope.added_constants.get(name)
    found = scope.element_facts.known(name, scope) if added is None else added
    if isinstance(found, LargeTensor) or (isinstance(found, Tensor) and len(found.values) > MAX_ELEMENTS):
        return None
    return found


def _forwarded(node: Node, scope: InferenceScope) -> Known:
    """Return the large initializer or Constant that an Identity reads, else `None`."""
    source = node.input(0) if node.op_type == "Identity" else ""
    owner = defining_scope(scope, source)
    found = owner.element_facts.known(source, owner) if owner else None
    return found if isinstance(found, LargeTensor) else None


def _is_standard(node: Node, op_type: str) -> bool:
    return node.op_type == op_type and canonical_domain(node.domain) == DEFAULT_DOMAIN


def _has_rule(node: Node) -> bool:
    """Return whether the evaluator has a rule for the operator of a node, and all attributes are known."""
    return (
        node.op_type in EVALUATED and _is_standard(node, node.op_type) and not node.has_attribute_references
    )


def _may_be_known(inputs: Sequence[Any], node: Node) -> bool:
    """Return whether outputs of a node may be known; `None` in `inputs` means unknown elements."""
    if node.op_type == "Concat":  # elements that come from the other inputs remain known
        return any(each is not None for each in inputs)
    return None not in inputs


def _stored_elements(name: str, scope: InferenceScope) -> Any:
    """Return an initializer or Constant, or `None` if unknown; `_MISSING` if a node must be evaluated."""
    if name in scope.emitted_producers:
        return _MISSING
    record = scope.producing_records.get(name)
    if record is not None:
        if name in scope.variables:
            return None
        _, domain, op_type, _, _ = record
        is_standard = canonical_domain(domain) == DEFAULT_DOMAIN
        if (is_standard and op_type in EVALUATED) or scope.is_call(record):
            return _MISSING
        if not is_standard or op_type != "Constant":
            return None
        # Most values of type int64 are Constants with a tensor: read it without creating a `Node`.
        tensor = _tensor_in(record, scope)
        return _constant_of_node(scope.node_of(record), scope) if tensor is None else _decoded(tensor, scope)
    stored, sparse = scope.initializer(name), scope.sparse_initializer(name)
    if stored is None and sparse is None:
        # All calls of a function may pass the same constant to an input: `visit` finds it.
        return _MISSING if not scope.has_plain_nodes and scope.is_overridable(name) else None
    # An initializer that is also a graph input is only a default value: callers may override it.
    if scope.is_overridable(name):
        return None
    return read_sparse_tensor(sparse) if sparse is not None else stored and _decoded(stored, scope)


def _tensor_in(record: NodeRecord, scope: InferenceScope) -> TensorProto | None:
    """Return the tensor in the only attribute, `value`, of a Constant; `None` for other Constants."""
    attributes = scope.proto_of(record).attribute
    value = attributes[0] if len(attributes) == 1 and scope.has_plain_nodes else None
    is_tensor = value and value.type == TENSOR and value.name == "value" and not value.ref_attr_name
    return value.t if value and is_tensor else None


def _constant_of_node(node: Node, scope: InferenceScope) -> Known:
    """Return the value of a Constant; `None` if it is invalid or refers to an attribute of the function."""
    if node.has_attribute_references or has_several_values(node):
        return None
    value = node.attribute("value")
    return _decoded(value, scope) if hasattr(value, "data_type") else read_constant_node(node)


def _decoded(stored: TensorProto, scope: InferenceScope) -> Known:
    """Decode a tensor; a tensor above `MAX_ELEMENTS`, or above `SMALL_SIZE` and the budget, stays encoded."""
    count = element_count(stored)
    if count is not None and (
        count > MAX_ELEMENTS or (count > SMALL_SIZE and not scope.evaluation.spend(count))
    ):
        return LargeTensor(stored)
    return read_tensor(stored)


def listed_sizes(scope: InferenceScope, data: str, sizes: str) -> tuple[ListedSize, ...] | None:
    """Return the sizes in the 1-D value `sizes`; `None` if it is unknown or of a different rank.

    Each size is a number, the axes of `data` that have this size in every run, or `None` if it is unknown.
    If one size is -1, the shape of `data` is not inferred, and sizes known only at run time are `None`.
    """
    elements = scope.elements(sizes)
    if elements is None or len(elements.dims) != 1:
        return None
    is_compared = -1 not in elements.values and any(map(is_symbol, elements.values))
    dims = list(enumerate(scope.symbolic_shape(data) or ())) if is_compared else []
    return tuple(
        tuple(axis for axis, size in dims if is_symbol(size) and size == each) or None
        if is_symbol(each)
        else each
        for each in elements.values
    )
