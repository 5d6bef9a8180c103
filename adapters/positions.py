"""Which positions of a dimension a padded one takes its elements from, found at run time."""

from __future__ import annotations

from typing import NamedTuple

from opshift.adapters.rewriter import Rewriter

OPSET = 11
"""What the nodes here are written for: the first opset with Range."""


class Steps(NamedTuple):
    """Names of lists: the positions counted on at both ends, the first that is left, and how many are."""

    numbers: str
    first: str
    length: str


def pair(pads: str, position: int, count: int, out: Rewriter) -> tuple[str, str]:
    """What is added before and after one of `count` dimensions, each a list of one."""
    places = (out.constant([each], "int64") for each in (position, count + position))
    before, after = (out.emit("Gather", [pads, place], opset=OPSET, axis=0) for place in places)
    return before, after


def steps(value: str, before: str, after: str, place: int, out: Rewriter) -> Steps:
    """Negative amounts cut off first; what is left is numbered from 0, and counted on at both ends."""
    first, last = (if_positive(_negated(amount, out), out) for amount in (before, after))
    size = out.emit("Gather", [_shape(value, out), out.constant([place], "int64")], opset=OPSET, axis=0)
    count = minus(minus(size, first, out), last, out)
    start = _negated(if_positive(before, out), out)
    limit = plus(count, if_positive(after, out), out)
    scalars = [out.emit("Squeeze", [each], opset=OPSET, axes=[0]) for each in (start, limit)]
    numbers = out.emit("Range", [*scalars, out.constant(1, "int64")], opset=OPSET)
    return Steps(numbers, first, count)


def around(taken: Steps, out: Rewriter) -> str:
    """Counted round and round."""
    return plus(out.emit("Mod", [taken.numbers, taken.length], opset=OPSET), taken.first, out)


def held(taken: Steps, out: Rewriter) -> str:
    """The first and the last over and over."""
    last = minus(taken.length, out.constant([1], "int64"), out)
    below = minus(last, if_positive(minus(last, if_positive(taken.numbers, out), out), out), out)
    return plus(below, taken.first, out)


def there_and_back(taken: Steps, out: Rewriter) -> str:
    """To the last and back to the first, over and over, without taking either twice."""
    one = out.constant([1], "int64")
    last = minus(taken.length, one, out)
    turns = plus(if_positive(minus(plus(last, last, out), one, out), out), one, out)
    ahead = minus(last, out.emit("Mod", [taken.numbers, turns], opset=OPSET), out)
    return plus(minus(last, out.emit("Abs", [ahead], opset=OPSET), out), taken.first, out)


def inside(taken: Steps, out: Rewriter) -> str:
    """Whether each is one of those that are left."""
    below = out.emit("Less", [taken.numbers, out.constant([0], "int64")], opset=OPSET)
    within = out.emit("Less", [taken.numbers, taken.length], opset=OPSET)
    return out.emit("And", [within, out.emit("Not", [below], opset=OPSET)], opset=OPSET)


def if_positive(value: str, out: Rewriter) -> str:
    """The number, or 0 if it is negative; Max takes no integers before 12."""
    twice = plus(value, out.emit("Abs", [value], opset=OPSET), out)
    return out.emit("Div", [twice, out.constant([2], "int64")], opset=OPSET)


def plus(first: str, second: str, out: Rewriter) -> str:
    """The sum."""
    return out.emit("Add", [first, second], opset=OPSET)


def minus(first: str, second: str, out: Rewriter) -> str:
    """The difference."""
    return out.emit("Sub", [first, second], opset=OPSET)


def _negated(value: str, out: Rewriter) -> str:
    return out.emit("Neg", [value], opset=OPSET)


def _shape(value: str, out: Rewriter) -> str:
    return out.emit("Shape", [value], opset=OPSET)
