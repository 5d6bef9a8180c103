"""Range: `start + i * delta` for every `i` below `(limit - start) / delta`, rounded up."""

import math

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.cast import cast
from opshift.adapters.emit.shapes import MAX_CONSTANT_ELEMENTS, index_range, reshape
from opshift.model.element_types import BY_NUMBER, round_to_float32

MAX_CONSTANT_DISTANCE = 1e38
"""Maximum distance of a constant range, safely below the largest float (3.4e38)."""

HALF_TYPES = ("float16", "bfloat16")

ALL_NUMERIC_TYPES_OPSET = 14
"""First opset in which Add, Sub and Mul support all numeric types."""


@adapter("Range", 27, 11)
def compute_in_stash_type(node: Node, out: Rewriter) -> None:
    """Compute float16 and bfloat16 in the type given by `stash_type`, and cast the result."""
    element_type = out.element_type(node.inputs[0])
    if element_type not in HALF_TYPES:
        out.replace(node, attributes={})
        return
    stash_type = BY_NUMBER[node.attribute("stash_type", 1)].name
    numbers = out.emit("Range", [cast(name, stash_type, out) for name in node.inputs])
    cast(numbers, element_type, out, node.outputs)


@adapter("Range", 11, 10)
def replace_range(node: Node, out: Rewriter) -> None:
    """Replace Range by a constant if all inputs are constant, else by indices times `delta` plus `start`."""
    known = [out.constant_value(name) for name in node.inputs]
    numbers = _constant_range([each for each in known if each is not None])
    if numbers is not None:
        out.replace(node, op_type="Constant", inputs=[], attributes={"value": numbers})
        return
    start, limit, delta = node.inputs
    element_type = out.element_type(start)
    if "int" in element_type and [each and each.scalar for each in (known[0], known[2])] == [0, 1]:
        # The most frequent form, which counts from 0 up to a limit.
        if out.is_nonnegative(limit):
            count = limit if element_type == "int64" else out.cast(limit, "int64")
        else:
            count = out.cast(out.emit("Relu", [out.cast(limit, "double")]), "int64")
        indices = index_range(reshape(count, (1,), out), out)
        if element_type == "int64":
            rename_output(indices, node, out)
        else:
            cast(indices, element_type, out, node.outputs)
        return
    positions = out.cast(index_range(_element_count(node, out), out), element_type)
    distances = out.emit("Mul", [positions, delta], opset=ALL_NUMERIC_TYPES_OPSET)
    out.emit("Add", [start, distances], node.outputs, opset=ALL_NUMERIC_TYPES_OPSET)


def _constant_range(inputs: list[Tensor]) -> Tensor | None:
    if len(inputs) < 3:
        return None
    start, limit, delta = (each.scalar for each in inputs)
    steps = (limit - start) / delta if delta else math.inf
    if not (steps <= MAX_CONSTANT_ELEMENTS and abs(limit - start) < MAX_CONSTANT_DISTANCE):
        return None
    if inputs[0].element_type == "float":
        # Round like a runtime that computes in float32: the last bit can change the number of steps.
        steps = round_to_float32(limit - start) / delta
    count = max(math.ceil(steps), 0)
    return Tensor(inputs[0].element_type, (count,), tuple(start + index * delta for index in range(count)))


def _element_count(node: Node, out: Rewriter) -> str:
    """Emit the number of elements, an int64 tensor of shape (1,); a negative count becomes 0."""
    start, limit, delta = node.inputs
    difference = out.emit("Sub", [limit, start], opset=ALL_NUMERIC_TYPES_OPSET)
    distance, step = (out.cast(name, "double") for name in (difference, delta))
    steps = out.emit("Ceil", [out.emit("Div", [distance, step])])
    return reshape(out.cast(out.emit("Relu", [steps]), "int64"), (1,), out)
