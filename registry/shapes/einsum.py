"""Shapes of Einsum; the equation determines the rank."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import broadcast, refined
from opshift.registry.shapes.reading import input_shape, text
from opshift.registry.shapes.table import rule

_TERM = re.compile(r"[A-Za-z]*(?:\.\.\.[A-Za-z]*)?")


@rule("einsum")
def einsum(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer one dimension per label of the output term, and the dimensions of the ellipsis."""
    left, arrow, right = text(node, "equation").replace(" ", "").partition("->")
    terms = left.split(",")
    output = right if arrow else _implicit_output(left)
    if len(terms) != node.input_count or not all(_TERM.fullmatch(term) for term in [*terms, output]):
        return [None]
    labels: dict[str, Shape | None] = {}
    ellipsis_shapes: list[Shape | None] = []
    for position, term in enumerate(terms):
        _bind_labels(term, input_shape(node, position), labels, ellipsis_shapes)
    before, dots, after = output.partition("...")
    middle = broadcast(ellipsis_shapes) if dots else ()
    if middle is None:
        return [None]
    return [(*_dims(before, labels), *middle, *_dims(after, labels))]


def _implicit_output(left: str) -> str:
    """Return the output of an equation without arrow: the ellipsis, then labels that occur once, sorted."""
    once = sorted(label for label in set(left) if label.isalpha() and left.count(label) == 1)
    return ("..." if "..." in left else "") + "".join(once)


def _bind_labels(
    term: str, shape: Shape | None, labels: dict[str, Shape | None], ellipsis_shapes: list[Shape | None]
) -> None:
    before, dots, after = term.partition("...")
    label_count = len(before) + len(after)
    if shape is not None and (len(shape) < label_count or (len(shape) > label_count and not dots)):
        shape = None
    end = 0 if shape is None else len(shape) - len(after)
    if dots:
        ellipsis_shapes.append(None if shape is None else shape[len(before) : end])
    if shape is None:
        return
    for label, dim in zip(before + after, shape[: len(before)] + shape[end:], strict=True):
        # A label may have size 1 in one term and another size elsewhere, so 1 does not determine the size.
        labels[label] = refined(labels.get(label, (None,)), (None if dim == 1 else dim,))


def _dims(term: str, labels: dict[str, Shape | None]) -> Shape:
    return tuple((labels.get(label) or (None,))[0] for label in term)
