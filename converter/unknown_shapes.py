"""Remedies for unknown shapes: they name the values whose shapes the user can declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote
from typing import NamedTuple

from opshift.converter.onnx_shapes import has_onnx
from opshift.inference.facts import InferenceScope
from opshift.inference.function_scope import CallScope
from opshift.inference.unknown_facts import (
    UnknownFact,
    dependencies_of,
    is_unregistered,
    owner_of,
    unknown_facts,
    unknown_facts_of,
)
from opshift.model.errors import UnknownShape
from opshift.model.types import MAX_RANK, declared_dims, dims_text
from opshift.registry.errors import UNREGISTERED_REMEDY

MAX_NAMES = 3
"""Maximum number of values that one remedy names."""

OTHER_TARGET = "choose another target"
"""Remedy if the value with the unknown shape is new: a declaration of inputs may not determine the shape."""

INLINING_REMEDY = "inline the functions, which have too many or too deeply nested calls to examine each one"
"""Remedy for facts about calls that are unknown because of a limit."""


class _Root(NamedTuple):
    """Value whose unknown shape makes other shapes unknown, with its label in messages.

    It is a value of the main graph, whose shape the caller can declare, or the output of an operator without
    a registered shape rule; `unregistered` is that operator. `sizes` has the names of the declared
    dimensions, and `None` for a dimension without a name or an unknown rank. `is_limited` marks outputs of
    calls if a limit left facts about calls unknown.
    """

    name: str
    label: str
    unregistered: str = ""
    sizes: frozenset[str | None] = frozenset()
    is_limited: bool = False


def inference_advice(*, infers_shapes: bool) -> str:
    """Return advice to infer more shapes; empty if onnx already infers them.

    `infers_shapes` states whether the caller requested the shapes that onnx infers.
    """
    if not infers_shapes:
        return "try --infer-shapes (infer_shapes=True)"
    return "" if has_onnx() else "install onnx, which --infer-shapes uses"


def exceeded_remedy(remedy: str) -> str:
    """Put `INLINING_REMEDY` before a remedy, or in place of a remedy that starts with `inline`."""
    return INLINING_REMEDY if remedy.startswith("inline") else f"{INLINING_REMEDY}, or {remedy}"


class UnknownShapeRemedies:
    """Search for the values that cause unknown shapes in one model; results are cached."""

    def __init__(self, advice: str) -> None:
        self._advice = advice
        self._roots: dict[UnknownFact, tuple[_Root, ...]] = {}

    def remedy(self, error: UnknownShape, scope: InferenceScope, inputs: Iterable[str]) -> str:
        """Return the remedy for a node in a scope, which is refused because of an unknown shape.

        Args:
            error: the error of the rewrite.
            scope: the scope of the node.
            inputs: the inputs of the node.
        """
        if error.causes is None:
            unknown = unknown_facts_of(error, scope)
        else:
            unknown = [UnknownFact(owner_of(name, scope), name, fact) for name, fact in error.causes]
        roots = self._roots_of_all(unknown)
        if roots:
            return self._declare(roots, error.otherwise)
        if scope.emitted_producers.keys() & set(error.values):
            # Inference does not follow some emitted nodes, such as a Loop: name the inputs as causes instead.
            return self.remedy_of_inputs(scope, inputs, error.otherwise or OTHER_TARGET)
        return ", or ".join(filter(None, (error.remedy, self._advice)))

    def remedy_of_inputs(
        self, scope: InferenceScope, inputs: Iterable[str], otherwise: str = OTHER_TARGET
    ) -> str:
        """Return the remedy for a node that is refused because the value of an emitted node is unknown."""
        roots = self._roots_of_all(unknown_facts(scope, inputs, "shape"))
        return self._declare(roots, otherwise) if roots else otherwise

    def _declare(self, roots: list[_Root], otherwise: str) -> str:
        """Return the remedy to declare the shapes of values, or to register the shape rules of operators."""
        operators = " and ".join(dict.fromkeys(root.unregistered for root in roots if root.unregistered))
        parts = [f"register the shape rule of {operators}: {UNREGISTERED_REMEDY}"] if operators else []
        if any(root.is_limited for root in roots):
            parts.append(INLINING_REMEDY)
        declared = _without_implied([root for root in roots if not root.unregistered and not root.is_limited])
        if declared:
            labels = " and ".join(root.label for root in declared)
            option = quote(f"{declared[0].name}=...")
            parts.append(f"declare the shape of {labels} with --shape {option} (shapes= in Python)")
        return ", or ".join(filter(None, (*parts, otherwise, self._advice)))

    def _roots_of_all(self, values: Iterable[UnknownFact]) -> list[_Root]:
        return list(dict.fromkeys(root for each in values for root in self._roots_of(each)))[:MAX_NAMES]

    def _roots_of(self, value: UnknownFact) -> tuple[_Root, ...]:
        """Return the roots of a value; each value is visited once for all refusals of a model."""
        found, pending, entered = self._roots, [value], dict[UnknownFact, list[UnknownFact]]()
        while pending:
            each = pending[-1]
            if each in found:
                pending.pop()
                continue
            dependencies = entered.get(each)
            if dependencies is None:
                dependencies = entered[each] = list(dependencies_of(each))
                if missing := [other for other in dependencies if other not in found]:
                    pending += reversed(missing)
                    continue
            pending.pop()
            roots = dict.fromkeys(root for other in dependencies for root in found.get(other, ()))
            found[each] = tuple(roots or _own_root(each))[:MAX_NAMES]
        return found[value]


def _own_root(value: UnknownFact) -> Iterator[_Root]:
    """Yield a value as its own root if it has one of the causes in `_Root`, otherwise nothing."""
    scope, name, fact = value
    producer = scope.producer(name)
    if producer is not None and is_unregistered(producer):
        assert producer.operator is not None
        yield _Root(name, repr(name), str(producer.operator.id))
        return
    is_call = producer is None and name in scope.producing_records
    if is_call and isinstance(scope, CallScope) and scope.functions.exceeds_limit:
        yield _Root(name, repr(name), is_limited=True)
        return
    is_main = scope.parent is None and not scope.is_function and fact != "elements"
    is_own = scope.is_overridable(name) or name in scope.producing_records
    is_tensor = "(" not in (scope.element_type(name) or "")
    if is_main and is_own and is_tensor:
        declared = scope.declared_type_proto(name)
        dims = None if declared is None else declared_dims(declared)
        is_shown = dims is not None and len(dims) <= MAX_RANK
        label = f"{name!r} {dims_text(dims or ())}" if is_shown else repr(name)
        sizes = [None] if dims is None else [dim for dim in dims if not isinstance(dim, int)]
        yield _Root(name, label, sizes=frozenset(sizes))


def _without_implied(roots: list[_Root]) -> list[_Root]:
    """Return the roots without those that share the names of all unknown dimensions with other roots."""
    found: list[_Root] = []
    for root in sorted(roots, key=lambda each: len(each.sizes), reverse=True):
        known = {size for other in found for size in other.sizes if size is not None}
        if not root.sizes or not root.sizes <= known:
            found.append(root)
    return [root for root in roots if root in found]
