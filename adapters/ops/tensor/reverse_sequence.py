"""ReverseSequence (introduced in opset 10), as Gather with computed indices."""

from __future__ import annotations

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.cast import cast
from opshift.adapters.emit.shapes import reshape


@adapter("ReverseSequence", 10, 9)
def gather_reversed_steps(node: Node, out: Rewriter) -> None:
    """Merge the time and batch dimensions into one, and gather its rows in the reversed order."""
    data, lengths = node.inputs
    time_axis = node.attribute("time_axis", 0)
    shape = out.shape(data)
    sizes = shape[:2] if shape else (None, None)
    steps, entries = sizes[time_axis], sizes[1 - time_axis]
    if steps is None or entries is None:
        raise CannotConvert(
            f"the first two dimensions of {data!r} are unknown",
            remedy=f"add a value_info with the shape of {data!r}",
        )
    first, second = (entries, steps) if time_axis else (steps, entries)
    pairs = [divmod(row, second) for row in range(first * second)]
    step = out.tensor(Tensor("int64", (first, second), tuple(pair[time_axis] for pair in pairs)))
    aligned = out.emit("Reshape", [lengths, out.int64([-1, 1] if time_axis else [1, -1])])
    source = _source_step(step, aligned, out)
    # Strides of one time step and one batch entry, counted in rows.
    strides = (1, steps) if time_axis else (entries, 1)
    offset = out.tensor(
        Tensor("int64", (first, second), tuple(pair[1 - time_axis] * strides[1] for pair in pairs))
    )
    source_rows = out.emit("Add", [out.emit("Mul", [source, out.int64(strides[0])]), offset])
    rows = reshape(data, (first * second, -1), out)
    indices = reshape(source_rows, (-1,), out)
    gathered = out.emit("Gather", [rows, indices], axis=0)
    out.emit("Reshape", [gathered, out.emit("Shape", [data])], node.outputs)


def _source_step(step: str, length: str, out: Rewriter) -> str:
    """Return `length - 1 - step` for steps below the length, and the step itself beyond it."""
    # Less supports integers only since opset 9; float32 holds step counts up to 2**24 exactly.
    is_reversed = cast(out.emit("Less", [cast(each, "float", out) for each in (step, length)]), "int64", out)
    last = out.emit("Sub", [length, out.int64(1)])
    doubled = out.emit("Mul", [step, out.int64(2)])
    return out.emit("Add", [step, out.emit("Mul", [is_reversed, out.emit("Sub", [last, doubled])])])
