"""ReverseSequence: the first so many steps of each batch entry, back to front."""

from __future__ import annotations

from opshift.adapters.casts import cast
from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("ReverseSequence", 10, 9)
def steps_are_gathered(node: Node, out: Rewriter) -> None:
    """Time and batch are laid out as one dimension, of which every step says where it comes from."""
    data, lengths = node.inputs
    time = node.attribute("time_axis", 0)
    shape = out.shape(data)
    sizes = shape[:2] if shape else (None, None)
    steps, entries = sizes[time], sizes[1 - time]
    if steps is None or entries is None:
        raise CannotConvert(
            f"how many steps and batch entries {data!r} has is not known",
            remedy=f"state it: add a value_info for {data!r}",
        )
    first, second = (entries, steps) if time else (steps, entries)
    pairs = [divmod(place, second) for place in range(first * second)]
    step = out.tensor(Tensor("int64", (first, second), tuple(pair[time] for pair in pairs)))
    aligned = out.emit("Reshape", [lengths, out.constant([-1, 1] if time else [1, -1], "int64")])
    source = _source(step, aligned, out)
    strides = (1, steps) if time else (entries, 1)
    fixed = out.tensor(Tensor("int64", (first, second), tuple(pair[1 - time] * strides[1] for pair in pairs)))
    places = out.emit("Add", [out.emit("Mul", [source, out.constant(strides[0], "int64")]), fixed])
    rows = out.emit("Reshape", [data, out.constant([first * second, -1], "int64")])
    listed = out.emit("Reshape", [places, out.constant([-1], "int64")])
    turned = out.emit("Gather", [rows, listed], axis=0)
    out.emit("Reshape", [turned, out.emit("Shape", [data])], node.outputs)


def _source(step: str, length: str, out: Rewriter) -> str:
    """Within the length the step counted from its end, beyond it the step itself."""
    # Comparisons take no integers before 9; the floats hold numbers of steps.
    is_within = cast(out.emit("Less", [cast(each, "float", out) for each in (step, length)]), "int64", out)
    last = out.emit("Sub", [length, out.constant(1, "int64")])
    twice = out.emit("Mul", [step, out.constant(2, "int64")])
    return out.emit("Add", [step, out.emit("Mul", [is_within, out.emit("Sub", [last, twice])])])
