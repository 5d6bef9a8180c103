"""Models that a downgrade changes and a following upgrade restores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from support.execution import Array, Feeds, build

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.linspace(-3, 3, 48, dtype=np.float32).reshape(1, 4, 3, 4)
ROW = np.linspace(0.5, 2, 4, dtype=np.float32)


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any
) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, name, **attributes)
    return made


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def single_node_model(
    opset: int,
    op_type: str,
    *,
    constants: Feeds | None = None,
    gaps: Sequence[str] = (),
    outputs: int = 1,
    **attributes: Any,
) -> onnx.ModelProto:
    """Return a model of one node between two unchanged ones; `gaps` are omitted inputs."""
    names = [f"y{index}" for index in range(outputs)]
    nodes = [
        node("Relu", ["x"], ["a"], "before"),
        node(
            op_type,
            ["a", *gaps, *(constants or {})],
            [f"n{index}" for index in range(outputs)],
            "it",
            **attributes,
        ),
        *(node("Neg", [f"n{index}"], [name], f"after{index}") for index, name in enumerate(names)),
    ]
    return build(nodes, {"x": X}, names, opset, ir_version=10, initializers=constants)


def graph(nodes: Sequence[NodeProto], outputs: Mapping[str, int], inputs: Mapping[str, int]) -> Any:
    values = [
        helper.make_tensor_value_info(name, element_type, None) for name, element_type in outputs.items()
    ]
    arguments = [
        helper.make_tensor_value_info(name, element_type, [] if element_type != FLOAT else None)
        for name, element_type in inputs.items()
    ]
    return helper.make_graph(list(nodes), "body", arguments, values)


def branches() -> onnx.ModelProto:
    """Return an If with branches that share value names."""
    then = graph([node("Gelu", ["x"], ["a"]), node("Clip", ["a", "low"], ["t"])], {"t": FLOAT}, {})
    other = graph([node("HardSwish", ["x"], ["a"]), node("Softmax", ["a"], ["e"])], {"e": FLOAT}, {})
    nodes = [node("If", ["yes"], ["y"], "if", then_branch=then, else_branch=other)]
    low = np.array(0.25, np.float32)
    feeds = {"x": X, "yes": np.array(True)}
    return build(nodes, feeds, ["y"], 20, ir_version=9, initializers={"low": low})


def loop() -> onnx.ModelProto:
    """Return a Loop with a Gelu and a mean over computed axes in its body."""
    body = graph(
        [
            node("Identity", ["go"], ["go_on"]),
            node("Gelu", ["carried"], ["a"]),
            node("ReduceMean", ["a", "axes"], ["mean"]),
            node("Add", ["a", "mean"], ["next"]),
        ],
        {"go_on": BOOL, "next": FLOAT},
        {"turn": INT64, "go": BOOL, "carried": FLOAT},
    )
    nodes = [node("Loop", ["turns", "", "x"], ["y"], "loop", body=body)]
    return build(
        nodes, {"x": X, "turns": np.array(2)}, ["y"], 20, ir_version=9, initializers={"axes": ints(2)}
    )


def function(opset: int = 20) -> onnx.ModelProto:
    """Return a local function with operators that the older opset lacks."""
    nodes = [node("Gelu", ["u"], ["g"]), node("LayerNormalization", ["g", "scale"], ["v"])]
    imports = [helper.make_opsetid("", opset)]
    made = helper.make_function("com.acme", "Act", ["u", "scale"], ["v"], nodes, imports)
    calls = [
        node("Act", ["x", "scale"], ["a"], domain="com.acme"),
        node("Act", ["a", "scale"], ["y"], domain="com.acme"),
    ]
    model = build(
        calls, {"x": X}, ["y"], {"": opset, "com.acme": 1}, ir_version=9, initializers={"scale": ROW}
    )
    model.functions.append(made)
    return model


def specialized_function() -> onnx.ModelProto:
    """Return a local function called for different ranks, on which the rewrite of Softmax depends."""
    made = helper.make_function(
        "com.acme",
        "Most",
        ["u"],
        ["v"],
        [node("Softmax", ["u"], ["v"], axis=1)],
        [helper.make_opsetid("", 13)],
    )
    calls = [
        node("Most", ["x"], ["a"], domain="com.acme"),
        node("Squeeze", ["x", "first"], ["b"]),
        node("Most", ["b"], ["c"], domain="com.acme"),
        node("Add", ["a", "c"], ["y"]),
    ]
    feeds, first = {"x": X}, {"first": ints(0)}
    model = build(calls, feeds, ["y"], {"": 13, "com.acme": 1}, ir_version=8, initializers=first)
    model.functions.append(made)
    return model


def shared_attribute_model(axis: int = 2) -> onnx.ModelProto:
    """Return a local function with a Softmax axis that all calls set to the same value."""
    softmax = node("Softmax", ["u"], ["v"])
    softmax.attribute.add(name="axis", ref_attr_name="axis", type=onnx.AttributeProto.INT)
    made = helper.make_function(
        "com.acme", "Most", ["u"], ["v"], [softmax], [helper.make_opsetid("", 13)], ["axis"]
    )
    calls = [
        node("Most", ["x"], ["a"], domain="com.acme", axis=axis),
        node("Most", ["a"], ["y"], domain="com.acme", axis=axis),
    ]
    model = build(calls, {"x": X}, ["y"], {"": 13, "com.acme": 1}, ir_version=8)
    model.functions.append(made)
    return model


def training_graph() -> onnx.ModelProto:
    """Return a model with a training graph."""
    model = single_node_model(20, "Gelu")
    info = model.training_info.add()
    info.algorithm.name = "algorithm"
    info.algorithm.node.extend([node("Gelu", ["n0"], ["p"]), node("HardSwish", ["p"], ["q"])])
    info.algorithm.output.extend([helper.make_tensor_value_info("q", FLOAT, None)])
    return model


def sequence_map() -> onnx.ModelProto:
    """Return a node with a subgraph that the conversion replaces."""
    body = graph([node("Gelu", ["e"], ["f"])], {"f": FLOAT}, {})
    body.input.append(helper.make_tensor_value_info("e", FLOAT, None))
    nodes = [
        node("SplitToSequence", ["x"], ["s"], axis=1),
        node("SequenceMap", ["s"], ["t"], "map", body=body),
        node("ConcatFromSequence", ["t"], ["y"], axis=1),
    ]
    model = build(nodes, {"x": X}, ["y"], 20, ir_version=9)
    model.graph.value_info.append(helper.make_tensor_sequence_value_info("s", FLOAT, None))
    return model


BOXES = {
    "boxes": np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11]]], np.float32),
    "scores": np.array([[[0.9, 0.75, 0.6]]], np.float32),
}


def non_max_suppression() -> onnx.ModelProto:
    """Return an operator that is rewritten as nested Loops."""
    limits = {"most": ints(3), "overlap": np.array([0.5], np.float32), "least": np.array([0.1], np.float32)}
    nodes = [node("NonMaxSuppression", [*BOXES, *limits], ["y"])]
    return build(nodes, BOXES, {"y": INT64}, 11, ir_version=6, initializers=limits)


def ml_only_model() -> onnx.ModelProto:
    """Return a model of ai.onnx.ml only; its downgrade adds a Cast of ai.onnx."""
    tree: dict[str, Any] = {
        "n_targets": 1,
        "tree_roots": [0],
        "nodes_featureids": [0],
        "nodes_modes": numpy_helper.from_array(np.array([0], np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.array([0.5])),
        "nodes_truenodeids": [0],
        "nodes_trueleafs": [1],
        "nodes_falsenodeids": [1],
        "nodes_falseleafs": [1],
        "leaf_targetids": [0, 0],
        "leaf_weights": numpy_helper.from_array(np.array([1.0, 10.0])),
    }
    nodes = [node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **tree)]
    feeds = {"x": np.array([[0.0], [1.0]])}
    return build(nodes, feeds, {"y": TensorProto.DOUBLE}, {"ai.onnx.ml": 5}, ir_version=10)


class Case(NamedTuple):
    """A model, its inputs, and a chain of target opsets."""

    title: str
    model: Callable[[], onnx.ModelProto]
    targets: tuple[Any, ...] = (13,)
    feeds: dict[str, Array] = {"x": X}  # never mutated


CASES = [
    Case("Gelu", lambda: single_node_model(20, "Gelu", approximate="tanh")),
    Case(
        "LayerNormalization",
        lambda: single_node_model(20, "LayerNormalization", constants={"scale": ROW, "bias": ROW}),
    ),
    Case("Softmax with a negative axis", lambda: single_node_model(20, "Softmax", axis=-2), (12, 9)),
    Case("LogSoftmax that only the upgrade would change", lambda: single_node_model(20, "LogSoftmax"), (12,)),
    Case("HardSwish", lambda: single_node_model(20, "HardSwish")),
    Case(
        "ReduceMean with axes as input",
        lambda: single_node_model(20, "ReduceMean", constants={"axes": ints(1, 3)}),
    ),
    Case(
        "Split into a number of parts",
        lambda: single_node_model(20, "Split", outputs=2, axis=3, num_outputs=2),
        (13, 10),
    ),
    Case(
        "Clip with bounds as inputs",
        lambda: single_node_model(20, "Clip", constants={"low": np.array(0.5, np.float32)}),
        (10,),
    ),
    Case(
        "Squeeze with axes as input",
        lambda: single_node_model(20, "Squeeze", constants={"axes": ints(0)}),
        (12,),
    ),
    Case(
        "Resize",
        lambda: single_node_model(
            20, "Resize", gaps=[""], constants={"scales": np.array([1, 1, 2, 2], np.float32)}, mode="nearest"
        ),
        (13, 10),
    ),
    Case(
        "GroupNormalization",
        lambda: single_node_model(
            21, "GroupNormalization", constants={"scale": ROW, "bias": ROW}, num_groups=2
        ),
        (20, 17),
    ),
    Case("operator rewritten as a loop", non_max_suppression, (9, 7), BOXES),
    Case(
        "target with initializers as inputs",
        lambda: single_node_model(20, "LayerNormalization", constants={"scale": ROW}),
        (7,),
    ),
    Case("branches of If", branches, (13, 10), {"x": X, "yes": np.array(True)}),
    Case("body of Loop", loop, (13, 11), {"x": X, "turns": np.array(2)}),
    Case("function", function),
    Case("function specialized for two ranks", specialized_function, (12,)),
    Case("function with an attribute of its calls", shared_attribute_model, (12, 9)),
    Case("training graph", training_graph, (13, 9)),
    Case("node with a subgraph", sequence_map, (16,)),
]


def gelu_clip_gelu_model() -> onnx.ModelProto:
    """Return two Gelus and a Clip with a bound input that the older opset lacks."""
    nodes = [
        node("Gelu", ["x"], ["a"], "first"),
        node("Clip", ["a", "low"], ["b"], "clip"),
        node("Gelu", ["b"], ["y"], "second"),
    ]
    return build(nodes, {"x": X}, ["y"], 20, ir_version=9, initializers={"low": np.array(0.25, np.float32)})


def serialized(model: Any) -> bytes:
    return bytes(model.SerializeToString(deterministic=True))


def opset_imports_of(model: Any) -> dict[str, int]:
    return {each.domain: each.version for each in model.opset_import if each.domain != "com.acme"}
