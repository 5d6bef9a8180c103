"""One computation in varied forms: fed, initializers, computed, in a function, in a branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from support.dynamic import with_symbolic_dims
from support.execution import Feeds, build

DOMAIN = "local"
RANKED_FORMS = ("fed", "symbolic", "initializer", "computed", "function", "branch")
FORMS = (*RANKED_FORMS, "no shapes")
MIN_IR_VERSION_FUNCTIONS = 8


def in_form(
    form: str,
    nodes: Sequence[onnx.NodeProto],
    feeds: Feeds,
    outputs: Mapping[str, int],
    opset: int,
) -> tuple[onnx.ModelProto, Feeds]:
    """Return a model with these nodes, and its feeds.

    Args:
        form: one of `FORMS`. `initializer` and `computed` apply to all inputs but the first.
        nodes: nodes that read the feeds and produce the outputs.
        feeds: arrays by name.
        outputs: element types by name.
        opset: the opset of the default domain.
    """
    first = next(iter(feeds))
    others = {name: array for name, array in feeds.items() if name != first}
    if form == "initializer":
        fed = {first: feeds[first]}
        return build(nodes, fed, outputs, opset, initializers=others), fed
    if form == "computed":
        copies = [helper.make_node("Identity", [f"{name}_fed"], [name]) for name in others]
        fed = {first: feeds[first], **{f"{name}_fed": array for name, array in others.items()}}
        return build([*copies, *nodes], fed, outputs, opset), fed
    if form == "function":
        return _in_function(nodes, feeds, outputs, opset), feeds
    if form == "branch":
        return _in_branch(nodes, feeds, outputs, opset), feeds
    model = build(nodes, feeds, outputs, opset, shapes=form != "no shapes")
    return (with_symbolic_dims(model) if form == "symbolic" else model), feeds


def _in_function(
    nodes: Sequence[onnx.NodeProto], feeds: Feeds, outputs: Mapping[str, int], opset: int
) -> onnx.ModelProto:
    call = helper.make_node("F", list(feeds), list(outputs), domain=DOMAIN)
    model = build([call], feeds, outputs, {"": opset, DOMAIN: 1}, ir_version=MIN_IR_VERSION_FUNCTIONS)
    imports = [helper.make_opsetid("", opset)]
    model.functions.append(
        helper.make_function(DOMAIN, "F", list(feeds), list(outputs), list(nodes), imports)
    )
    return model


def _in_branch(
    nodes: Sequence[onnx.NodeProto], feeds: Feeds, outputs: Mapping[str, int], opset: int
) -> onnx.ModelProto:
    """Return a model with the nodes in both branches of an If."""
    branches = {f"{name}_branch": _branch(nodes, outputs, name) for name in ("then", "else")}
    chosen = helper.make_node("If", ["condition"], list(outputs), **branches)
    return build([chosen], feeds, outputs, opset, initializers={"condition": np.array(True)})


def _branch(nodes: Sequence[onnx.NodeProto], outputs: Mapping[str, int], suffix: str) -> onnx.GraphProto:
    """Return a graph of copies of the nodes with other names."""
    produced = {name for node in nodes for name in node.output}
    copies = []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [f"{name}_{suffix}" if name in produced else name for name in node.input]
        copy.output[:] = [f"{name}_{suffix}" if name else "" for name in node.output]
        copy.name = f"{node.name}_{suffix}" if node.name else ""
        copies.append(copy)
    infos = [
        helper.make_tensor_value_info(f"{name}_{suffix}", element, None) for name, element in outputs.items()
    ]
    return helper.make_graph(copies, suffix, [], infos)
