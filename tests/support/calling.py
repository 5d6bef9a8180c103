"""Models whose nodes call functions of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, helper

from support.running import Array, Feeds, build

X: Array = np.linspace(-3, 3, 12, dtype=np.float32).reshape(1, 3, 4)
FEEDS: Feeds = {"x": X}
INT, INTS, FLOAT, GRAPH = AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.GRAPH


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **stated: Any
) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, domain=domain, **stated)
    return made


def call(called: str, inputs: Sequence[str], outputs: Sequence[str], **stated: Any) -> NodeProto:
    """A call of a function of the domain `local`."""
    return node(called, inputs, outputs, "local", **stated)


def given(changed: NodeProto, **references: tuple[str, int]) -> NodeProto:
    """The node with attributes that the call of its function gives: their names there, and their types."""
    for name, (reference, kind) in references.items():
        changed.attribute.add(name=name, ref_attr_name=reference, type=kind)
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
    """A function, by default from `a` to `b`."""
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
    """A model whose graph reads `x` and returns `y`."""
    made = build(nodes, feeds, outputs, {"": opset, domain: 1}, initializers=initializers)
    made.functions.extend(functions)
    return made


def called(body: FunctionProto, opset: int = 11, **stated: Any) -> onnx.ModelProto:
    """A model that does nothing but call a function."""
    made = node(body.name, ["x"], ["y"], body.domain, **stated)
    if body.overload:
        made.overload = body.overload
    return model([made], [body], opset, domain=body.domain)
