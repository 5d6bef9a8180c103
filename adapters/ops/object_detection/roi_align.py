"""RoiAlign: the default coordinates are shifted by half a pixel (`half_pixel`) since opset 16."""

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.ops.object_detection.roi_align_samples import sample_boxes
from opshift.model.element_types import round_to_float32

HALF_PIXEL = 0.5

MODE_ATTRIBUTE = "coordinate_transformation_mode"


@adapter("RoiAlign", 16, 10)
def shift_boxes(node: Node, out: Rewriter) -> None:
    """Shift constant boxes by half a pixel; gather the samples of other boxes and of small ones.

    The boxes are scaled, too: they then have exactly the coordinates that version 16 computes, so that the
    number of samples, which depends on their sizes, is the same.
    """
    attributes = node.without(MODE_ATTRIBUTE)
    if node.attribute(MODE_ATTRIBUTE, b"half_pixel") == b"output_half_pixel":
        out.replace(node, attributes=attributes)
        return
    data, boxes, batches = node.inputs
    element_type = out.element_type(data)
    # float16 does not represent every shifted box.
    compute_type = "double" if element_type == "double" else "float"
    rounded = float if compute_type == "double" else round_to_float32
    scale = node.attribute("spatial_scale", 1.0)
    constant = out.constant_value(boxes)
    values = constant.values if constant is not None else ()
    corners = tuple(rounded(rounded(corner * scale) - HALF_PIXEL) for corner in values)
    # Version 10 enlarges boxes that are smaller than a pixel.
    is_small = any(corners[i + 2] - corners[i] < 1 for i in range(len(corners)) if i % 4 < 2)
    if constant is None or is_small:
        sample_boxes(node, HALF_PIXEL, out)
        return
    moved = out.tensor(Tensor(compute_type, constant.dims, corners))
    wide = data if compute_type == element_type else out.cast(data, compute_type)
    pooled = node.outputs[0] if wide == data else out.fresh("pooled")
    attributes["spatial_scale"] = 1.0
    out.replace(node, inputs=[wide, moved, batches], outputs=[pooled], attributes=attributes)
    if wide != data:
        out.cast(pooled, element_type, node.outputs)
