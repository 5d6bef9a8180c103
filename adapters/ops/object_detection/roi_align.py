"""RoiAlign: the default coordinates are shifted by half a pixel (`half_pixel`) since opset 16."""

from __future__ import annotations

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter

MODE_ATTRIBUTE = "coordinate_transformation_mode"


@adapter("RoiAlign", 16, 10)
def shift_boxes(node: Node, out: Rewriter) -> None:
    """Shift constant boxes by half a pixel; refuse boxes smaller than a pixel, which version 10 enlarges."""
    attributes = node.without(MODE_ATTRIBUTE)
    if node.attribute(MODE_ATTRIBUTE, b"half_pixel") == b"output_half_pixel":
        out.replace(node, attributes=attributes)
        return
    data, boxes, batches = node.inputs
    constant = out.require_constant(
        boxes, "input rois, which has to be shifted by half a pixel below opset 16,"
    )
    scale = node.attribute("spatial_scale", 1.0)
    corners = constant.values
    if any((corners[i + 2] - corners[i]) * scale < 1 for i in range(len(corners)) if i % 4 < 2):
        raise CannotConvert("a box is smaller than a pixel, and RoiAlign-10 enlarges such boxes to a pixel")
    shifted = tuple(corner - 0.5 / scale for corner in corners)
    moved = out.tensor(Tensor(constant.element_type, constant.dims, shifted))
    out.replace(node, inputs=[data, moved, batches], attributes=attributes)
