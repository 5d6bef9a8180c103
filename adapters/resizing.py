"""Upsample and Resize, upgrades: the form of the scales, and the mapping of output to input pixels."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

NO_REGION = Tensor("float", (0,), ())
"""Empty `roi`: only `tf_crop_and_resize` reads it."""


@adapter("Upsample", 1, 7)
def factors_become_a_list(node: Node, out: Rewriter) -> None:
    """Merge `height_scale` and `width_scale` into `scales`; rename mode `bilinear` to `linear`."""
    scales = [1.0, 1.0, node.attribute("height_scale"), node.attribute("width_scale")]
    bilinear = node.attribute("mode", b"nearest") == b"bilinear"
    mode = b"linear" if bilinear else b"nearest"
    out.become(node, attributes={"scales": scales, "mode": mode})


@adapter("Resize", 10, 11)
def coordinates_are_stated(node: Node, out: Rewriter) -> None:
    """Declare the `asymmetric` mapping of version 10; nearest rounds down to enlarge and up to shrink."""
    data, scales = node.inputs
    attributes = {**node.attributes, "coordinate_transformation_mode": b"asymmetric"}
    if node.attribute("mode", b"nearest") != b"nearest":
        out.become(node, inputs=[data, out.tensor(NO_REGION), scales], attributes=attributes)
        return
    shrink, enlarge = _split_scales(scales, out)
    # Version 11 has one `nearest_mode` for all axes, so shrinking gets a separate node.
    if shrink and enlarge:
        data = out.emit(
            "Resize", [data, out.tensor(NO_REGION), shrink], **{**attributes, "nearest_mode": b"ceil"}
        )
    rounding = b"floor" if enlarge else b"ceil"
    inputs = [data, out.tensor(NO_REGION), enlarge or shrink]
    out.become(node, inputs=inputs, attributes={**attributes, "nearest_mode": rounding})


@adapter("Resize", 11, 13)
def size_or_scale(node: Node, out: Rewriter) -> None:
    """Omit the empty `scales` that version 11 requires next to `sizes`."""
    if not node.input(3):
        out.become(node)
        return
    data, region, _, sizes = node.inputs
    out.become(node, inputs=[data, region, "", sizes])


def _split_scales(scales: str, out: Rewriter) -> tuple[str, str]:
    """Return the scales below one and those above, with ones elsewhere; `""` if there are no such scales."""
    known = out.constant_value(scales)
    if known is None:
        one = out.constant([1.0], "float")
        return out.emit("Min", [scales, one]), out.emit("Max", [scales, one])
    if all(value >= 1 for value in known.values):
        return "", scales
    if all(value <= 1 for value in known.values):
        return scales, ""
    shrink = out.constant([min(value, 1.0) for value in known.values], "float")
    return shrink, out.constant([max(value, 1.0) for value in known.values], "float")
