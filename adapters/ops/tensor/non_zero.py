"""NonZero (introduced in opset 9), as a loop over all positions."""

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.cast import cast
from opshift.adapters.emit.shapes import Dimension, computed_dimension, dimension, index_range, reshape
from opshift.adapters.emit.subgraphs import LoopBuilder


@adapter("NonZero", 9, 8)
def collect_positions_in_loop(node: Node, out: Rewriter) -> None:
    """Collect the flat positions of nonzero elements in a Loop, and split them into one row per dimension."""
    data = node.inputs[0]
    rank = out.rank(data)
    if not rank:
        reason = f"{data!r} is a scalar; NonZero can be rewritten only for rank 1 or higher"
        raise CannotConvert(reason, "shape.unsupported")
    number = out.uniform_element(data)
    if number is not None and number.element_type != "string" and number.scalar:
        count = out.emit("Shape", [data]) if rank == 1 else reshape(out.emit("Size", [data]), (1,), out)
        quotient = index_range(count, out)
    else:
        # The cast to bool first turns every nonzero element into 1.
        flat = reshape(cast(cast(data, "bool", out), "int64", out), (-1,), out)
        quotient = _nonzero_positions(flat, out)
    rows = []
    for axis in reversed(range(1, rank)):
        size = _at_least_one(dimension(data, axis, out), out)
        next_quotient = out.emit("Div", [quotient, size])
        rows.append(out.emit("Sub", [quotient, out.emit("Mul", [next_quotient, size])]))
        quotient = next_quotient
    lists = [out.emit("Unsqueeze", [row], axes=[0]) for row in (quotient, *reversed(rows))]
    if rank == 1:
        rename_output(lists[0], node, out)
    else:
        out.emit("Concat", lists, node.outputs, axis=0)


def _nonzero_positions(flags: str, out: Rewriter) -> str:
    """Return the positions of the ones in a list of ones and zeros."""
    body = LoopBuilder(out)
    found = body.input("int64", (None,))
    position = reshape(body.iteration, (1,), body)
    # Repeating a position 0 times or once appends it only if its flag is set.
    repeated = body.emit("Tile", [position, body.emit("Gather", [flags, position])])
    body.output(body.emit("Concat", [found, repeated], axis=0), "int64", (None,))
    empty = out.tensor(Tensor("int64", (0,), ()))
    (positions,) = body.emit_loop(computed_dimension(flags, 0, out), [empty], out)
    return positions


def _at_least_one(size: Dimension, out: Rewriter) -> str:
    """Return a size as a divisor, with 0 replaced by 1."""
    # Runtimes reject a divisor of 0 even if the dividend is empty.
    if isinstance(size, int):
        return out.int64([max(size, 1)])
    is_zero = cast(out.emit("Equal", [size, out.int64([0])]), "int64", out)
    return out.emit("Add", [size, is_zero])
