"""Remedies of refusals that unknown shapes cause: which shapes of the caller's model to declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from opshift.converter.onnx_shapes import has_onnx
from opshift.inference.facts import InferenceScope, Producer
from opshift.inference.infer_types import body_output
from opshift.model.errors import UnknownShape
from opshift.model.types import MAX_RANK, declared_dims, dims_text
from opshift.registry.errors import UNREGISTERED_REMEDY
from opshift.registry.shapes.all_rules import SHAPE_RULES

MAX_NAMES = 3
"""Maximum number of values that one remedy names."""

BRANCHES = ("then_branch", "else_branch")
"""Subgraphs of If, whose outputs correspond to those of the node."""


SIZE_TYPES = ("int32", "int64")
"""Element types of computed sizes and shapes."""

Fact = Literal["rank", "shape", "elements"]
"""Unknown fact about a value. Elements matter for values that determine shapes, such as that of Reshape."""


class _Unknown(NamedTuple):
    """Value with an unknown fact, and the scope that defines it."""

    scope: InferenceScope
    name: str
    fact: Fact


class _Root(NamedTuple):
    """Input or value of the main graph with a shape that the caller can declare, and its label.

    Or the output of an operator with a shape rule that is not registered, and the name of the operator.
    """

    name: str
    label: str
    unregistered: str = ""


def inference_advice(*, infers_shapes: bool) -> str:
    """Return advice to infer more shapes; empty if that is done."""
    if not infers_shapes:
        return "try --infer-shapes (infer_shapes=True)"
    return "" if has_onnx() else "install onnx, which --infer-shapes uses"


class UnknownShapes:
    """Values of one model with unknown shapes, and the values of its main graph that they depend on."""

    def __init__(self, advice: str) -> None:
        self._advice = advice
        self._roots: dict[_Unknown, tuple[_Root, ...]] = {}

    def remedy(self, error: UnknownShape, scope: InferenceScope) -> str:
        """Return the remedy for a refused node in a scope."""
        has_ranks = None not in map(scope.rank, filter(None, error.values))
        unknown = _unknown(scope, error.values, "shape" if has_ranks else "rank")
        roots = list(dict.fromkeys(root for each in unknown for root in self._roots_of(each)))[:MAX_NAMES]
        if not roots and scope.emitted_producers.keys() & set(error.values):
            return error.otherwise  # sizes of values that the conversion adds, whatever the model declares
        parts = [error.remedy]
        if roots:
            operators = " and ".join(dict.fromkeys(root.unregistered for root in roots if root.unregistered))
            parts = [f"register the shape rule of {operators}: {UNREGISTERED_REMEDY}"] if operators else []
            declared = [root for root in roots if not root.unregistered]
            if declared:
                labels = " and ".join(root.label for root in declared)
                option = f"--shape {declared[0].name}=... (shapes= in Python)"
                parts.append(f"declare the shape of {labels} with {option}")
            parts.append(error.otherwise)
        return ", or ".join(filter(None, (*parts, self._advice)))

    def _roots_of(self, value: _Unknown) -> tuple[_Root, ...]:
        """Return the roots of a value; each value is visited once for all refusals of a model."""
        pending, entered = [value], set[_Unknown]()
        while pending:
            each = pending[-1]
            if each in self._roots:
                pending.pop()
                continue
            dependencies = list(_dependencies(each))
            missing = [other for other in dependencies if other not in self._roots]
            if missing and each not in entered:
                entered.add(each)
                pending += reversed(missing)
                continue
            pending.pop()
            roots = dict.fromkeys(root for other in dependencies for root in self._roots.get(other, ()))
            self._roots[each] = tuple(roots or _own_root(each))[:MAX_NAMES]
        return self._roots[value]


def _unknown(scope: InferenceScope, names: Iterable[str], fact: Fact) -> Iterator[_Unknown]:
    """Yield the values that a scope sees and of which it does not know a fact."""
    for name in filter(None, names):
        owner = scope
        while owner.parent is not None and not owner.is_local(name):
            owner = owner.parent
        if fact == "elements":
            # Constants are not read: they may be large.
            is_unknown = owner.producer(name) is not None and owner.element_type(name) in SIZE_TYPES
        else:
            sizes = (owner.rank(name),) if fact == "rank" else owner.shape(name)
            is_unknown = sizes is None or None in sizes
        if is_unknown:
            yield _Unknown(owner, name, fact)


def _dependencies(value: _Unknown) -> Iterator[_Unknown]:
    """Yield the unknown facts that determine an unknown fact."""
    scope, name, fact = value
    producer, record = scope.producer(name), scope.producing_records.get(name)
    if record is not None and producer is None:  # a call of a function
        yield from _unknown(scope, record[3], fact)
    elif producer is not None and _is_unregistered(producer):
        return
    elif producer is not None:
        inputs = producer.node.inputs
        if fact == "elements" and producer.node.op_type in ("Shape", "Size"):
            fact = "shape"
        found = list(_unknown(scope, inputs, fact))
        yield from found or _unknown(scope, inputs, "elements")
        for branch in BRANCHES if producer.node.op_type == "If" else ():
            _, output, body = body_output(producer.node, branch, producer.position, scope)
            yield from _unknown(body, [output], fact) if body else ()
    elif scope.owner is not None and scope.parent is not None:
        yield from _unknown(scope.parent, scope.owner.input, fact)
    else:
        for caller, argument in scope.arguments(name):
            yield from _unknown(caller, [argument], fact)


def _is_unregistered(producer: Producer) -> bool:
    """Return whether the shape rule of a node's operator is not registered: its inputs do not matter then."""
    operator = producer.operator
    return operator is not None and bool(operator.shape) and operator.shape not in SHAPE_RULES


def _own_root(value: _Unknown) -> Iterator[_Root]:
    """Yield a value as its own root if the caller can declare its shape, or register its shape rule."""
    scope, name, fact = value
    producer = scope.producer(name)
    if producer is not None and _is_unregistered(producer):
        assert producer.operator is not None
        yield _Root(name, repr(name), str(producer.operator.id))
        return
    is_main = scope.parent is None and not scope.is_function and fact != "elements"
    is_own = scope.is_overridable(name) or name in scope.producing_records
    is_tensor = "(" not in (scope.element_type(name) or "")
    if is_main and is_own and is_tensor:
        declared = scope.declared_type_proto(name)
        dims = None if declared is None else declared_dims(declared)
        is_shown = dims is not None and len(dims) <= MAX_RANK
        yield _Root(name, f"{name!r} {dims_text(dims or ())}" if is_shown else repr(name))
