"""GatherND and GatherElements: they came at 11, and 12 lets GatherND leave out leading dimensions."""

from __future__ import annotations

from itertools import product
from math import prod

from opshift.adapters.flat_indices import LONGEST, ONE, depth_of, flat_elements, flat_tuples
from opshift.adapters.negative_indices import OPSET, nonnegative
from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("GatherND", 12, 11)
def batch_indices_are_written_out(node: Node, out: Rewriter) -> None:
    """Each tuple is preceded by its own place in the `batch_dims` leading dimensions."""
    batch_dims = node.attribute("batch_dims", 0)
    if not batch_dims:
        out.become(node, attributes={})
        return
    data, indices = node.inputs
    last = out.rank(indices) - 1
    places = _batch_places(indices, batch_dims, last, out)
    tuples = out.emit("Concat", [places, indices], axis=last)
    out.become(node, inputs=[data, tuples], attributes={})


@adapter("GatherND", 11, 10)
def tuples_become_rows(node: Node, out: Rewriter) -> None:
    """The data is flattened to the rows that the tuples name, and Gather takes the rows."""
    data, indices = node.inputs
    depth = depth_of(indices, out)
    rows = out.emit("Flatten", [data], axis=depth, opset=OPSET)
    flat = flat_tuples(data, indices, out)
    found = out.emit("Gather", [rows, flat], axis=0, opset=OPSET)
    bounds = [out.constant([each], "int64") for each in (depth, 2**31 - 1, 0)]
    inner = out.emit("Slice", [out.emit("Shape", [data], opset=OPSET), *bounds], opset=OPSET)
    shape = out.emit("Concat", [out.emit("Shape", [flat], opset=OPSET), inner], axis=0, opset=OPSET)
    out.emit("Reshape", [found, shape], node.outputs, opset=OPSET)


@adapter("GatherElements", 11, 10)
def elements_become_flat(node: Node, out: Rewriter) -> None:
    """Gather takes the elements from the data laid out flat."""
    data, indices = node.inputs
    axis, rank = node.attribute("axis", 0), out.rank(data)
    if rank == 1:
        indices = nonnegative(indices, data, 0, out)
        out.become(node, op_type="Gather", inputs=[data, indices], attributes={"axis": 0}, opset=OPSET)
        return
    flat_data = out.emit("Reshape", [data, out.constant([-1], "int64")], opset=OPSET)
    flat = flat_elements(data, indices, axis % rank, out)
    found = out.emit("Gather", [flat_data, flat], axis=0, opset=OPSET)
    shape = out.emit("Shape", [indices], opset=OPSET)
    out.emit("Reshape", [found, shape], node.outputs, opset=OPSET)


def _batch_places(indices: str, batch_dims: int, last: int, out: Rewriter) -> str:
    """For each tuple its indices in the leading dimensions."""
    outer_sizes = (out.shape(indices) or ())[:last]
    sizes = [size for size in outer_sizes if size is not None]
    if len(sizes) == last and prod(sizes) <= LONGEST:
        places = (place for full in product(*map(range, sizes)) for place in full[:batch_dims])
        return out.tensor(Tensor("int64", (*sizes, batch_dims), tuple(places)))
    shape = out.emit("Shape", [indices])
    bounds = [out.constant([each], "int64") for each in (0, batch_dims, last)]
    batch = out.emit("Slice", [shape, *bounds[:2], bounds[0]])
    ones = out.emit("ConstantOfShape", [batch], value=ONE)
    listed = out.emit("Transpose", [out.emit("NonZero", [ones])], perm=[1, 0])
    alone = out.constant([*[1] * (last - batch_dims), batch_dims], "int64")
    aligned = out.emit("Reshape", [listed, out.emit("Concat", [batch, alone], axis=0)])
    outer = out.emit("Slice", [shape, bounds[0], bounds[2], bounds[0]])
    return out.emit("Expand", [aligned, out.emit("Concat", [outer, bounds[1]], axis=0)])
