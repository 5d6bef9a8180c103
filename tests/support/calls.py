"""Models with local functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, helper

from support.execution import Array, Feeds, build

X: Array = np.linspace(-3, 3, 12, dtype=np.float32).reshape(1, 3, 4)
FEEDS: Feeds = {"x": X}
INT, INTS, FLOAT, GRAPH = AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.GRAPH


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any
) -> NodeProto:
    proto: NodeProto = helper.make_node(op_type, inputs, outputs, domain=domain, **attributes)
    return proto


def call(function_name: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    """Return a call of a function of the domain `local`."""
    return node(function_name, inputs, outputs, "local", **attributes)


def with_references(changed: NodeProto, **references: tuple[str, int]) -> NodeProto:
    """Add attributes that refer to attributes of the function: by name, the referenced name and the type."""
    for name, (reference, attribute_type) in references.items():
        changed.attribute.add(name=name, ref_attr_name=reference, type=attribute_type)
    return changed


def function(
    name: str,
    nodes: Sequence[NodeProto],
    opset: int | Mapping[str, int] = 11,
    *,
    inputs: Sequence[str] = ("a",),
    outputs: Sequence[str] = ("b",),
    domain: str = "local",
    attributes: Sequence[str] = (),
    overload: str = "",
) -> FunctionProto:
    """Return a function, by default from `a` to `b`."""
    opsets = {"": opset, "local": 1} if isinstance(opset, int) else opset
    imports = [helper.make_opsetid(*each) for each in opsets.items()]
    made: FunctionProto = helper.make_function(
        domain, name, list(inputs), list(outputs), list(nodes), imports, attributes=list(attributes)
    )
    if overload:
        made.overload = overload
    return made


def model(
    nodes: Sequence[NodeProto],
    functions: Sequence[FunctionProto],
    opset: int = 11,
    *,
    feeds: Feeds = FEEDS,
    outputs: Sequence[str] = ("y",),
    initializers: Feeds | None = None,
    domain: str = "local",
) -> onnx.ModelProto:
    """Return a model with a graph from `x` to `y`."""
    made = build(nodes, feeds, outputs, {"": opset, domain: 1}, initializers=initializers)
    made.functions.extend(functions)
    return made


def calling_model(body: FunctionProto, opset: int = 11, **attributes: Any) -> onnx.ModelProto:
    """Return a model with a single call of a function."""
    made = node(body.name, ["x"], ["y"], body.domain, **attributes)
    if body.overload:
        made.overload = body.overload
    return model([made], [body], opset, domain=body.domain)
