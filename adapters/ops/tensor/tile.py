"""Tile: the inputs `tiles` and `axis` changed to `repeats`, one count for each dimension, in opset 6."""

from collections.abc import Sequence

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.emit.expression import IEEE_FLOAT_TYPES
from opshift.adapters.emit.shapes import reshape


@adapter("Tile", 1, 6)
def expand_tiles_to_repeats(node: Node, out: Rewriter) -> None:
    """Replace `tiles` and `axis` with `repeats`, which is 1 for all other dimensions."""
    data, tiles, axis_name = node.inputs
    axis = int(out.require_constant(axis_name, "input axis").scalar)
    rank = out.rank(data)
    axis += rank if axis < 0 else 0
    before, after = [1] * axis, [1] * (rank - axis - 1)
    known = out.constant_value(tiles)
    if known is not None:
        out.replace(node, inputs=[data, out.int64([*before, int(known.scalar), *after])])
        return
    count = reshape(out.cast(tiles, "int64"), (1,), out)
    parts = [out.int64(before), count, out.int64(after)]
    out.replace(node, inputs=[data, out.emit("Concat", parts, axis=0)])


@adapter("Tile", 6, 1)
def tile_one_axis_at_a_time(node: Node, out: Rewriter) -> None:
    """Emit one Tile for each repeated dimension."""
    data, element_type = node.inputs[0], out.element_type(node.inputs[0])
    if element_type not in IEEE_FLOAT_TYPES:
        reason = f"{data!r} has element type {element_type}; Tile supports only floating point before opset 6"
        raise CannotConvert(reason, "type.unsupported", subject=element_type)
    counts = out.require_constant(node.inputs[1], "input repeats").values
    repeated = [(axis, count) for axis, count in enumerate(counts) if count != 1]
    if not repeated:
        out.replace(node, op_type="Identity", inputs=[data])
        return
    for axis, count in repeated:
        outputs: Sequence[str] | int = node.outputs if axis == repeated[-1][0] else 1
        # All inputs of Tile-1 have the element type of the data.
        numbers = [out.constant(number, element_type) for number in (count, axis)]
        data = out.emit("Tile", [data, *numbers], outputs)
