"""Experimental operators that opset 10 removed, rewritten with the remaining operators."""

from __future__ import annotations

from typing import Any

from opshift.adapters.core.adapter_table import adapter
from opshift.adapters.core.rewriter import Rewriter
from opshift.model.errors import CannotConvert
from opshift.model.node import Node, Tensor

INT64_MAX = 2**63 - 1
"""Slice end that includes the last element: with 0 counted from the end, -0 would be the start."""


@adapter("Affine", 1, 10)
def expand_affine(node: Node, out: Rewriter) -> None:
    """Rewrite as `alpha * X + beta`."""
    element_type = out.element_type(node.inputs[0])
    product = out.emit("Mul", [node.inputs[0], out.constant(node.attribute("alpha", 1.0), element_type)])
    out.emit("Add", [product, out.constant(node.attribute("beta", 0.0), element_type)], node.outputs)


@adapter("Scale", 1, 10)
def expand_scale(node: Node, out: Rewriter) -> None:
    """Rewrite as `scale * input`."""
    factor = out.constant(node.attribute("scale", 1.0), out.element_type(node.inputs[0]))
    out.emit("Mul", [node.inputs[0], factor], node.outputs)


@adapter("ImageScaler", 1, 10)
def expand_image_scaler(node: Node, out: Rewriter) -> None:
    """Rewrite as `scale * input + bias`, with an element of `bias` for each channel."""
    image = node.inputs[0]
    bias = _require_attribute(node, "bias")
    shape = out.shape(image)
    _require_four_dimensions(image, out)
    if shape and shape[1] not in (None, len(bias)):
        raise CannotConvert(f"bias has {len(bias)} elements for {shape[1]} channels")
    element_type = out.element_type(image)
    product = out.emit("Mul", [image, out.constant(node.attribute("scale", 1.0), element_type)])
    offset = out.tensor(Tensor(element_type, (1, len(bias), 1, 1), tuple(bias)))
    out.emit("Add", [product, offset], node.outputs)


def _require_attribute(node: Node, name: str) -> Any:
    """Return an attribute that has no default."""
    found = node.attribute(name)
    if found is None:
        raise CannotConvert(f"{name} is missing, and its definition has no default", remedy=f"set {name}")
    return found


def _require_four_dimensions(image: str, out: Rewriter) -> None:
    rank = out.known_rank(image)
    if rank not in (None, 4):
        raise CannotConvert(f"{image!r} has {rank} dimensions; the operator requires N x C x H x W")


@adapter(("ParametricSoftplus", "ScaledTanh"), 1, 10)
def expand_scaled_activation(node: Node, out: Rewriter) -> None:
    """Rewrite as `alpha * f(beta * x)`, where `f` is Softplus or Tanh."""
    alpha, beta = _require_attribute(node, "alpha"), _require_attribute(node, "beta")
    element_type = out.element_type(node.inputs[0])
    inner = out.emit("Mul", [node.inputs[0], out.constant(beta, element_type)])
    curve = out.emit("Softplus" if node.op_type == "ParametricSoftplus" else "Tanh", [inner])
    out.emit("Mul", [curve, out.constant(alpha, element_type)], node.outputs)


@adapter("Crop", 1, 10)
def convert_crop_to_slice(node: Node, out: Rewriter) -> None:
    """Rewrite as Slice of height and width.

    `border` is left, top, right, bottom; `scale` is height, width.
    """
    size = _read_sizes(node, "scale", 2)
    border = _read_sizes(node, "border", 4) or (size and (0, 0, 0, 0))
    if not border:
        raise CannotConvert(
            "border and scale are both missing", remedy="set border to left, top, right, bottom"
        )
    _require_four_dimensions(node.inputs[0], out)
    left, top, right, bottom = border
    ends = (top + size[0], left + size[1]) if size else (-bottom or INT64_MAX, -right or INT64_MAX)
    bounds = [out.int64(each) for each in ((top, left), ends, (2, 3))]
    out.replace(node, op_type="Slice", inputs=[node.inputs[0], *bounds], attributes={})


def _read_sizes(node: Node, name: str, count: int) -> tuple[int, ...]:
    """Return a list of sizes, or an empty tuple if the attribute is absent."""
    found = tuple(node.attribute(name, ()))
    if found and (len(found) != count or min(found) < 0):
        raise CannotConvert(f"{name} is {list(found)}, expected {count} numbers of at least 0")
    return found
