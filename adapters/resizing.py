"""Upsample and Resize, up: how the size is given, and where output pixels lie on the input."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

NO_REGION = Tensor("float", (0,), ())
"""An empty `roi`: only `tf_crop_and_resize` reads it."""


@adapter("Upsample", 1, 7)
def factors_become_a_list(node: Node, out: Rewriter) -> None:
    """Height and width had a factor each; from 7 on every dimension has one, and `bilinear` is `linear`."""
    scales = [1.0, 1.0, node.attribute("height_scale"), node.attribute("width_scale")]
    bilinear = node.attribute("mode", b"nearest") == b"bilinear"
    mode = b"linear" if bilinear else b"nearest"
    out.become(node, attributes={"scales": scales, "mode": mode})


@adapter("Resize", 10, 11)
def coordinates_are_stated(node: Node, out: Rewriter) -> None:
    """Before 11 a pixel lay at `output / scale`; nearest rounded down to enlarge and up to shrink."""
    data, scales = node.inputs
    attributes = {**node.attributes, "coordinate_transformation_mode": b"asymmetric"}
    if node.attribute("mode", b"nearest") != b"nearest":
        out.become(node, inputs=[data, out.tensor(NO_REGION), scales], attributes=attributes)
        return
    shrink, enlarge = _factors(scales, out)
    if shrink and enlarge:
        data = out.emit(
            "Resize", [data, out.tensor(NO_REGION), shrink], **{**attributes, "nearest_mode": b"ceil"}
        )
    rounding = b"floor" if enlarge else b"ceil"
    inputs = [data, out.tensor(NO_REGION), enlarge or shrink]
    out.become(node, inputs=inputs, attributes={**attributes, "nearest_mode": rounding})


@adapter("Resize", 11, 13)
def size_or_scale(node: Node, out: Rewriter) -> None:
    """Beside `sizes`, version 11 wanted empty `scales`; from 13 on they are left out."""
    if not node.input(3):
        out.become(node)
        return
    data, region, _, sizes = node.inputs
    out.become(node, inputs=[data, region, "", sizes])


def _factors(scales: str, out: Rewriter) -> tuple[str, str]:
    """The scales below one and those above, each with ones elsewhere; `""` if there are none such."""
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
