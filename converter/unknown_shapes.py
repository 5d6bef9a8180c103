"""Remedies of refusals that unknown shapes cause: which shapes of the caller's model to declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from opshift.converter.onnx_shapes import has_onnx
from opshift.inference.facts import InferenceScope
from opshift.inference.infer_types import body_output
from opshift.model.errors import UnknownShape
from opshift.model.types import declared_dims, dims_text

MAX_NAMES = 3
"""Maximum number of values that one remedy names."""

BRANCHES = ("then_branch", "else_branch")
"""Subgraphs of If, whose outputs correspond to those of the node."""


class _Unknown(NamedTuple):
    """Value with an unknown rank or size, and the scope that defines it."""

    scope: InferenceScope
    name: str
    is_rank: bool


class _Root(NamedTuple):
    """Input or value of the main graph with a shape that the caller can declare, and its label."""

    name: str
    label: str


class UnknownShapes:
    """Values of one model with unknown shapes, and the values of its main graph that they depend on."""

    def __init__(self, *, infers_shapes: bool) -> None:
        self._infers_shapes = infers_shapes
        self._roots: dict[_Unknown, tuple[_Root, ...]] = {}

    def remedy(self, error: UnknownShape, scope: InferenceScope) -> str:
        """Return the remedy for a refused node in a scope."""
        is_rank = any(scope.rank(name) is None for name in filter(None, error.values))
        unknown = _unknown(scope, error.values, is_rank=is_rank)
        roots = list(dict.fromkeys(root for each in unknown for root in self._roots_of(each)))[:MAX_NAMES]
        parts = [error.remedy]
        if roots:
            labels = " and ".join(root.label for root in roots)
            option = f"--shape {roots[0].name}=... (shapes= in Python)"
            parts = [f"declare the shape of {labels} with {option}", *filter(None, [error.otherwise])]
        if not self._infers_shapes:
            parts.append("try --infer-shapes (infer_shapes=True)")
        elif not has_onnx():
            parts.append("install onnx, which --infer-shapes uses")
        return ", or ".join(parts)

    def _roots_of(self, value: _Unknown) -> tuple[_Root, ...]:
        """Return the roots of a value; each value is visited once for all refusals of a model."""
        pending, entered = [value], set[_Unknown]()
        while pending:
            each = pending[-1]
            dependencies = [] if each in self._roots else list(_dependencies(each))
            missing = [other for other in dependencies if other not in self._roots]
            if missing and each not in entered:
                entered.add(each)
                pending += reversed(missing)
                continue
            pending.pop()
            roots = (root for other in dependencies for root in self._roots.get(other, ()))
            found = tuple(dict.fromkeys(roots if dependencies else _own_root(each)))[:MAX_NAMES]
            self._roots.setdefault(each, found)
        return self._roots[value]


def _unknown(scope: InferenceScope, names: Iterable[str], *, is_rank: bool) -> Iterator[_Unknown]:
    """Yield the values that a scope sees with an unknown rank, or else with an unknown size."""
    for name in filter(None, names):
        owner = scope
        while owner.parent is not None and not owner.is_local(name):
            owner = owner.parent
        sizes = (owner.rank(name),) if is_rank else owner.shape(name)
        if sizes is None or None in sizes:
            yield _Unknown(owner, name, is_rank)


def _dependencies(value: _Unknown) -> Iterator[_Unknown]:
    """Yield the values with unknown shapes that determine the shape of a value."""
    scope, name, is_rank = value
    producer, record = scope.producer(name), scope.producing_records.get(name)
    if record is not None and producer is None:  # a call of a function
        yield from _unknown(scope, record[3], is_rank=is_rank)
    elif producer is not None:
        yield from _unknown(scope, producer.node.inputs, is_rank=is_rank)
        for branch in BRANCHES if producer.node.op_type == "If" else ():
            _, output, body = body_output(producer.node, branch, producer.position, scope)
            yield from _unknown(body, [output], is_rank=is_rank) if body else ()
    elif scope.owner is not None and scope.parent is not None:
        yield from _unknown(scope.parent, scope.owner.input, is_rank=is_rank)
    else:
        for caller, argument in scope.arguments(name):
            yield from _unknown(caller, [argument], is_rank=is_rank)


def _own_root(value: _Unknown) -> Iterator[_Root]:
    """Yield a value as its own root if the caller can declare its shape."""
    scope, name, _ = value
    is_main = scope.parent is None and not scope.is_function
    is_own = scope.is_overridable(name) or name in scope.producing_records
    is_tensor = "(" not in (scope.element_type(name) or "")
    if is_main and is_own and is_tensor:
        declared = scope.declared_type_proto(name)
        dims = None if declared is None else declared_dims(declared)
        yield _Root(name, repr(name) if dims is None else f"{name!r} {dims_text(dims)}")
