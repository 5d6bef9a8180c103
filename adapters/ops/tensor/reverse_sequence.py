"""ReverseSequence (introduced in opset 10), as Gather with computed indices."""

from opshift.adapters import Node, Rewriter, Tensor, UnknownShape, adapter
from opshift.adapters.emit.expression import Expression, cast
from opshift.adapters.emit.shapes import reshape


@adapter("ReverseSequence", 10, 9)
def gather_reversed_steps(node: Node, out: Rewriter) -> None:
    """Merge the time and batch dimensions into one, and gather its rows in the reversed order."""
    data, lengths = node.inputs
    time_axis = node.attribute("time_axis", 0)
    steps, entries = (out.known_dimension(data, axis) for axis in (time_axis, 1 - time_axis))
    if steps is None or entries is None:
        reason = f"the first two dimensions of {data!r} are unknown"
        raise UnknownShape(reason, data)
    first, second = (entries, steps) if time_axis else (steps, entries)
    out.require_elements(first, second)
    pairs = [divmod(row, second) for row in range(first * second)]
    step = out.tensor(Tensor("int64", (first, second), tuple(pair[time_axis] for pair in pairs)))
    aligned = out.emit("Reshape", [lengths, out.int64([-1, 1] if time_axis else [1, -1])])
    source = _source_step(step, aligned, out)
    # Strides of one time step and one batch entry, counted in rows.
    strides = (1, steps) if time_axis else (entries, 1)
    offsets = tuple(pair[1 - time_axis] * strides[1] for pair in pairs)
    offset = out.tensor(Tensor("int64", (first, second), offsets))
    source_rows = out.emit("Add", [out.emit("Mul", [source, out.int64(strides[0])]), offset])
    rows = reshape(data, (first * second, -1), out)
    indices = reshape(source_rows, (-1,), out)
    gathered = out.emit("Gather", [rows, indices], axis=0)
    out.emit("Reshape", [gathered, out.emit("Shape", [data])], node.outputs)


def _source_step(step: str, length: str, out: Rewriter) -> str:
    """Return `length - 1 - step` for steps below the length, and the step itself beyond it."""
    # Less supports integers only since opset 9; float32 holds step counts up to 2**24 exactly.
    below = out.emit("Less", [cast(each, "float", out) for each in (step, length)])
    is_reversed = Expression(cast(below, "int64", out), "int64", out)
    distance = Expression(length, "int64", out) - 1 - Expression(step, "int64", out) * 2
    return out.emit("Add", [step, (is_reversed * distance).name])
