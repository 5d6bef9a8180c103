"""NonZero came at 9: before, the places are collected one by one in a loop."""

from __future__ import annotations

from opshift.adapters.bodies import LoopBody
from opshift.adapters.casts import cast
from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.sizes import Size, computed_dimension, dimension
from opshift.adapters.table import adapter


@adapter("NonZero", 9, 8)
def places_are_collected(node: Node, out: Rewriter) -> None:
    """The places of the data laid out flat, then taken apart into one row for each dimension."""
    data = node.inputs[0]
    rank = out.rank(data)
    if not rank:
        raise CannotConvert(f"{data!r} is a scalar, whose places have no rows")
    flat = out.emit("Reshape", [cast(cast(data, "bool", out), "int64", out), out.constant([-1], "int64")])
    rest = _places(flat, out)
    rows = []
    for axis in reversed(range(1, rank)):
        size = _at_least_one(dimension(data, axis, out), out)
        above = out.emit("Div", [rest, size])
        rows.append(out.emit("Sub", [rest, out.emit("Mul", [above, size])]))
        rest = above
    lists = [out.emit("Unsqueeze", [row], axes=[0]) for row in (rest, *reversed(rows))]
    out.emit("Concat", lists, node.outputs, axis=0)


def _at_least_one(size: Size, out: Rewriter) -> str:
    """The size to divide by, of which runtimes want that it is not 0 even if they divide nothing."""
    if isinstance(size, int):
        return out.constant([max(size, 1)], "int64")
    is_zero = cast(out.emit("Equal", [size, out.constant([0], "int64")]), "int64", out)
    return out.emit("Add", [size, is_zero])


def _places(ones: str, out: Rewriter) -> str:
    """The places of the ones among ones and zeros: each place is repeated that often."""
    body = LoopBody(out)
    found = body.input("int64", (None,))
    place = body.emit("Reshape", [body.turn, body.constant([1], "int64")])
    repeated = body.emit("Tile", [place, body.emit("Gather", [ones, place])])
    body.output(body.emit("Concat", [found, repeated], axis=0), "int64", (None,))
    nothing = out.tensor(Tensor("int64", (0,), ()))
    (places,) = body.run(computed_dimension(ones, 0, out), [nothing], out)
    return places
