"""RoiAlign: boxes lie half a pixel further to the front from 16 on, unless the node says otherwise."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

MODE = "coordinate_transformation_mode"


@adapter("RoiAlign", 16, 10)
def boxes_are_shifted(node: Node, out: Rewriter) -> None:
    """Half a pixel is taken off constant boxes; version 10 enlarges those that are smaller than a pixel."""
    attributes = node.without(MODE)
    if node.attribute(MODE, b"half_pixel") == b"output_half_pixel":
        out.become(node, attributes=attributes)
        return
    data, boxes, batches = node.inputs
    stated = out.require_constant(boxes, "input rois, which is shifted by half a pixel before 16,")
    scale = node.attribute("spatial_scale", 1.0)
    corners = stated.values
    if any((corners[i + 2] - corners[i]) * scale < 1 for i in range(len(corners)) if i % 4 < 2):
        raise CannotConvert("a box is smaller than a pixel, to which RoiAlign-10 enlarges it")
    shifted = tuple(corner - 0.5 / scale for corner in corners)
    moved = out.tensor(Tensor(stated.element_type, stated.dims, shifted))
    out.become(node, inputs=[data, moved, batches], attributes=attributes)
