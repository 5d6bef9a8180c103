"""Shape rules have unique names, are used by definitions, and never contradict ONNX."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from opshift.model.errors import OpshiftError
from opshift.model.types import Shape
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import default_registry
from opshift.registry.shapes.all_rules import SHAPE_RULES
from opshift.registry.shapes.rule_table import rule
from opshift.registry.shapes.shape_context import ShapeContext

REGISTRY = default_registry()
VERSIONS = REGISTRY.get_all_schemas_with_history()
Shapes = Sequence[Shape | None]
NumpyArray = np.ndarray[Any, np.dtype[Any]]
MAX_CONSTANT_ELEMENTS = 64
INCONSISTENT_IN_ONNX = {"test_stft", "test_stft_with_window"}
"""ONNX computes one-sided spectra for these cases but infers two-sided ones."""


@dataclass(frozen=True)
class NodeView(ShapeContext):
    """View of a NodeProto for shape rules."""

    node: NodeProto
    version: OperatorVersion
    inputs: Shapes
    constants: Mapping[int, tuple[Any, ...]]
    output_count: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "output_count", len(self.node.output))

    @cached_property
    def _attributes(self) -> dict[str, AttributeProto]:
        return {each.name: each for each in self.node.attribute}

    def attribute(self, name: str) -> Any:
        if name not in self._attributes:
            declared = self.version.attributes.get(name)
            return declared.default if declared else None
        value = helper.get_attribute_value(self._attributes[name])
        return tuple(value) if isinstance(value, list) else value

    def constant(self, position: int) -> tuple[Any, ...] | None:
        return self.constants.get(position)

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        body = self.attribute(attribute)
        if not isinstance(body, GraphProto) or position >= len(body.output):
            return None
        return _declared_shape(body.output[position].type)


def _declared_shape(value_type: onnx.TypeProto) -> Shape | None:
    if not value_type.HasField("tensor_type") or not value_type.tensor_type.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") else None for dim in value_type.tensor_type.shape.dim
    )


def _inferred_by_rule(view: NodeView) -> Shapes:
    return SHAPE_RULES[view.version.shape](view) if view.version.shape else ()


def _contradicts(found: Shape | None, expected: Shape | None) -> bool:
    if found is None or expected is None:
        return False
    pairs = zip(found, expected, strict=False)
    return len(found) != len(expected) or any(a is not None and b is not None and a != b for a, b in pairs)


# Names of rules


def test_definitions_name_existing_rules() -> None:
    assert [(v.id, v.shape) for v in VERSIONS if v.shape and v.shape not in SHAPE_RULES] == []


def test_definitions_use_every_rule() -> None:
    assert set(SHAPE_RULES) == {version.shape for version in VERSIONS} - {""}


def test_refuses_a_second_rule_with_the_same_name() -> None:
    with pytest.raises(OpshiftError, match=r"'broadcast' is defined by both .*broadcast_all and .*second"):

        @rule("broadcast")
        def second(node: object) -> Shapes:
            return [None]


def test_type_attributes_of_outputs_exist() -> None:
    named = [(v, output) for v in VERSIONS for output in v.outputs if output.type_attribute]
    assert named
    assert [v.id for v, output in named if output.type_attribute not in v.attributes] == []


# Rules for single nodes


class Row(NamedTuple):
    """An operator at an opset with the shapes of its inputs and the expected shapes of its outputs."""

    op: str
    opset: int
    inputs: Shapes
    expected: Shapes
    attributes: Mapping[str, Any] = {}
    constants: Mapping[int, tuple[Any, ...]] = {}
    domain: str = ""


TENSOR = helper.make_tensor("", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])


def _branch(*shapes: Sequence[int | None]) -> GraphProto:
    outputs = [helper.make_tensor_value_info(f"o{n}", 1, list(shape)) for n, shape in enumerate(shapes)]
    return helper.make_graph([], "branch", [], outputs)


ROWS = {
    # Elementwise
    "an unknown rank stays unknown": Row("Relu", 14, [None], [None]),
    "an unknown dimension stays unknown": Row("Relu", 14, [(None, 3)], [(None, 3)]),
    "both operands broadcast": Row("Add", 14, [(2, 1, None), (3, 4)], [(2, 3, 4)]),
    "an unknown dimension broadcast with 1 stays unknown": Row("Add", 14, [(None,), (1,)], [(None,)]),
    "broadcasting with an unknown rank returns no rank": Row("Add", 14, [(2, 3), None], [None]),
    "incompatible dimensions return an unknown dimension": Row("Add", 14, [(2,), (3,)], [(None,)]),
    "Add 6 keeps the first shape": Row("Add", 6, [(2, 3, 4), (3,)], [(2, 3, 4)], {"broadcast": 1, "axis": 1}),
    "Max 6 has equal shapes": Row("Max", 6, [(2, None), None], [(2, None)]),
    "Max 8 broadcasts": Row("Max", 8, [(2, 1), (3,)], [(2, 3)]),
    "Dropout's mask has the data's shape": Row("Dropout", 13, [(2, 3)], [(2, 3), (2, 3)]),
    "statistics of BatchNormalization are per channel": Row(
        "BatchNormalization", 14, [(2, 3, 4)], [(2, 3, 4), (3,)]
    ),
    "statistics of a non-spatial BatchNormalization are unknown": Row(
        "BatchNormalization", 7, [(2, 3, 4)], [(2, 3, 4), None], {"spatial": 0}
    ),
    "statistics of LayerNormalization have 1 after the axis": Row(
        "LayerNormalization", 17, [(2, 3, 4)], [(2, 3, 4), (2, 1, 1)], {"axis": 1}
    ),
    "an optimizer updates tensors and states": Row(
        "Adagrad",
        1,
        [(), (), (1,), (2,), (1,), (2,), (1,), (2,)],
        [(1,), (2,), (1,), (2,)],
        domain="ai.onnx.preview.training",
    ),
    # Reductions
    "reduced axes become 1": Row("ReduceSum", 11, [(2, 3, 4)], [(2, 1, 4)], {"axes": [-2]}),
    "reduced axes disappear": Row("ReduceSum", 11, [(2, 3, 4)], [(2, 4)], {"axes": [1], "keepdims": 0}),
    "axes as an input": Row("ReduceSum", 13, [(2, 3), (1,)], [(1, 3)], constants={1: (0,)}),
    "all axes are reduced by default": Row("ReduceMean", 13, [(2, 3)], [(1, 1)]),
    "all axes without keepdims leave a scalar": Row("ReduceMean", 13, [None], [()], {"keepdims": 0}),
    "an empty list of axes may reduce no axis": Row(
        "ReduceSum", 13, [(2, 3), (0,)], [(2, 3)], {"noop_with_empty_axes": 1}, {1: ()}
    ),
    "one unknown axis removes one dimension": Row(
        "ReduceSum", 13, [(2, 3), (1,)], [(None,)], {"keepdims": 0}
    ),
    "two unknown axes may be equal": Row("ReduceSum", 13, [(2, 3), (2,)], [None], {"keepdims": 0}),
    "unknown axes with keepdims keep the rank": Row("ReduceSum", 13, [(2, 3), None], [(None, None)]),
    "an invalid axis returns no rank": Row("ReduceSum", 11, [(2, 3)], [None], {"axes": [5], "keepdims": 0}),
    "ArgMax reduces axis 0 by default": Row("ArgMax", 13, [(2, 3)], [(1, 3)]),
    "a loss is a scalar": Row("NegativeLogLikelihoodLoss", 13, [(2, 3, 4), (2, 4)], [()]),
    "an unreduced loss has the labels' shape": Row(
        "SoftmaxCrossEntropyLoss", 13, [(2, 3, 4), (2, 4)], [(2, 4), (2, 3, 4)], {"reduction": "none"}
    ),
    # Products
    "a matrix times a matrix": Row("MatMul", 13, [(5, 2, 3), (3, 4)], [(5, 2, 4)]),
    "a vector times a matrix": Row("MatMul", 13, [(3,), (5, 3, 4)], [(5, 4)]),
    "a vector times a vector": Row("MatMul", 13, [(3,), (3,)], [()]),
    "a scalar operand is invalid": Row("MatMul", 13, [(), (3,)], [None]),
    "Gemm returns a matrix for any inputs": Row("Gemm", 13, [None, (4, 3)], [(None, 4)], {"transB": 1}),
    "no selected axes": Row(
        "Resize",
        19,
        [(2, 3), None, None, (0,)],
        [(2, 3)],
        {"axes": [], "keep_aspect_ratio_policy": "not_larger"},
        {3: ()},
    ),
    "labels of an equation": Row("Einsum", 12, [(2, 3), (3, 4)], [(2, 4)], {"equation": "ij,jk->ik"}),
    "an equation without an arrow": Row("Einsum", 12, [(2, 3), (3, 4)], [(2, 4)], {"equation": "ij,jk"}),
    "an ellipsis": Row("Einsum", 12, [(5, 2, 3)], [(5, 3, 2)], {"equation": "...ij->...ji"}),
    "an ellipsis of unknown rank": Row("Einsum", 12, [None], [None], {"equation": "...ij->...ji"}),
    "an equation determines the rank": Row("Einsum", 12, [None], [(None, None)], {"equation": "ij->ji"}),
    # Windows
    "a convolution": Row("Conv", 11, [(1, 3, 8, 8), (4, 3, 3, 3)], [(1, 4, 6, 6)]),
    "strides, pads and dilations": Row(
        "Conv", 11, [(1, 3, 9), (4, 3, 3)], [(1, 4, 5)], {"strides": [2], "pads": [2, 2], "dilations": [2]}
    ),
    "the size divided by the stride": Row(
        "Conv", 1, [(1, 3, 9), (4, 3, 3)], [(1, 4, 5)], {"strides": [2], "auto_pad": "SAME_LOWER"}
    ),
    "weights determine the rank": Row("Conv", 11, [None, (4, 3, 3)], [(None, 4, None)]),
    "kernel_shape determines the rank": Row(
        "Conv", 11, [None, None], [(None, None, None)], {"kernel_shape": [3]}
    ),
    "ranks that differ return no rank": Row("Conv", 11, [(1, 3, 9), (4, 3, 3, 3)], [None]),
    "a transposed convolution": Row(
        "ConvTranspose", 11, [(1, 3, 4), (3, 2, 3)], [(1, 2, 9)], {"strides": [2]}
    ),
    "a grouped transposed convolution": Row(
        "ConvTranspose", 11, [(1, 4, 4), (4, 2, 3)], [(1, 4, 7)], {"group": 2, "output_shape": [7]}
    ),
    "a list of the contradictions length": Row(
        "ConvTranspose", 11, [(1, 4, 4), (4, 2, 3)], [(1, 2, None)], {"output_padding": [0, 0]}
    ),
    "pooling": Row("MaxPool", 12, [(1, 3, 8)], [(1, 3, 4), (1, 3, 4)], {"kernel_shape": [2], "strides": [2]}),
    "rounding up": Row(
        "AveragePool", 11, [(1, 3, 8)], [(1, 3, 4)], {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}
    ),
    "rounding up to a window in padding only is ambiguous": Row(
        "MaxPool",
        11,
        [(1, 3, 5)],
        [(1, 3, None)],
        {"kernel_shape": [2], "strides": [3], "pads": [0, 1], "ceil_mode": 1},
    ),
    "global pooling": Row("GlobalMaxPool", 1, [(1, 3, 8, None)], [(1, 3, 1, 1)]),
    # Layout
    "Transpose reverses by default": Row("Transpose", 13, [(1, 2, None)], [(None, 2, 1)]),
    "a permutation determines the rank": Row("Transpose", 13, [None], [(None, None)], {"perm": [1, 0]}),
    "an invalid permutation returns no rank": Row("Transpose", 13, [(2, 3)], [None], {"perm": [0, 2]}),
    "a matrix split at the axis": Row("Flatten", 13, [(2, 3, None)], [(2, None)]),
    "a matrix split at the end": Row("Flatten", 13, [(2, 3)], [(6, 1)], {"axis": 2}),
    "Reshape 1 has an attribute": Row("Reshape", 1, [(2, 3, 4)], [(6, 4)], {"shape": [-1, 4]}),
    "0 copies a dimension and -1 is inferred": Row(
        "Reshape", 13, [(None, 3, 4), None], [(None, 12)], constants={1: (0, -1)}
    ),
    "0 may be an empty dimension": Row(
        "Reshape", 14, [(0, 3), None], [(0, 5)], {"allowzero": 1}, {1: (0, 5)}
    ),
    "the length of the shape is the rank": Row("Reshape", 13, [None, (3,)], [(None, None, None)]),
    "-1 with an unknown size": Row("Reshape", 13, [(None, 3), None], [(None, 3)], constants={1: (-1, 3)}),
    "0 without a dimension to copy": Row("Reshape", 13, [(2,), None], [(None, None)], constants={1: (2, 0)}),
    "-1 with a copied 0": Row("Reshape", 13, [(0, 3), None], [(0, None)], constants={1: (0, -1)}),
    "axes of an attribute disappear": Row("Squeeze", 11, [(1, None, 3)], [(3,)], {"axes": [0, 1]}),
    "axes of a constant input disappear": Row("Squeeze", 13, [(1, 2), None], [(2,)], constants={1: (-2,)}),
    "Squeeze removes every 1 by default": Row("Squeeze", 13, [(1, 2, 1)], [(2,)]),
    "an unknown dimension may be 1": Row("Squeeze", 13, [(1, None)], [None]),
    "an axis that is not 1 is invalid": Row("Squeeze", 11, [(2, 3)], [None], {"axes": [0]}),
    "new axes": Row("Unsqueeze", 11, [(2, 3)], [(1, 2, 3, 1)], {"axes": [0, -1]}),
    "unknown new axes": Row("Unsqueeze", 13, [(2, 3), (1,)], [(None, None, None)]),
    "repeated new axes are invalid": Row("Unsqueeze", 11, [(2, 3)], [None], {"axes": [0, -4]}),
    "dimensions of the axis are added": Row("Concat", 13, [(2, None), (3, 4)], [(5, 4)], {"axis": 0}),
    "an input of unknown rank adds an unknown size": Row(
        "Concat", 13, [(2, 4), None], [(None, 4)], {"axis": 0}
    ),
    "Concat 1 has no default axis": Row("Concat", 1, [(2, 4), (2, 4)], [(None, None)]),
    "lengths as an attribute": Row("Split", 11, [(5, 2)], [(2, 2), (3, 2)], {"split": [2, 3]}),
    "lengths as an input": Row("Split", 13, [(5, 2), None], [(2, 2), (3, 2)], constants={1: (2, 3)}),
    "equal lengths": Row("Split", 13, [(6, 2)], [(3, 2), (3, 2)]),
    "a shorter last length": Row("Split", 18, [(5, 2)], [(3, 2), (2, 2)], {"num_outputs": 2}),
    "Split 1 has no default axis": Row("Split", 1, [(6, 2)], [(None, None), (None, None)]),
    "a constant shape": Row("Expand", 13, [(3, 1), None], [(2, 3, 4)], constants={1: (2, 1, 4)}),
    "a shape of greater length": Row("Expand", 13, [(3, 1), (3,)], [(None, 3, None)]),
    "repeats": Row("Tile", 13, [(2, 3), None], [(4, 3)], constants={1: (2, 1)}),
    "Tile 1 repeats an axis": Row("Tile", 1, [(2, 3), (), ()], [(2, 6)], constants={1: (2,), 2: (1,)}),
    "Pad 1 names its attribute paddings": Row("Pad", 1, [(2, 3)], [(3, 6)], {"paddings": [1, 1, 0, 2]}),
    "Pad 2 has an attribute": Row("Pad", 2, [(2, 3)], [(3, 6)], {"pads": [1, 1, 0, 2]}),
    "Pad 18 has axes": Row("Pad", 18, [(2, 3), None, None, None], [(2, 6)], constants={1: (1, 2), 3: (-1,)}),
    "negative pads": Row("Pad", 13, [(2, 3), None], [(2, 2)], constants={1: (0, -1, 0, 0)}),
    # Indices
    "indices replace the axis": Row("Gather", 13, [(2, 3, 4), (5, 6)], [(2, 5, 6, 4)], {"axis": 1}),
    "an invalid axis of Gather": Row("Gather", 13, [(2, 3), (5,)], [None], {"axis": 2}),
    "an index selects dimensions": Row(
        "GatherND", 12, [(2, 3, 4), (2, 5, 1)], [(2, 5, 4)], {"batch_dims": 1}
    ),
    "elements have the indices' shape": Row("GatherElements", 13, [(2, 3), (1, 3)], [(1, 3)]),
    "Slice 1 has attributes": Row("Slice", 1, [(2, 9)], [(2, 7)], {"axes": [1], "starts": [1], "ends": [-1]}),
    "Slice 10 has inputs": Row(
        "Slice",
        10,
        [(9,), None, None, None, None],
        [(5,)],
        constants={1: (100,), 2: (-100,), 3: (0,), 4: (-2,)},
    ),
    "a backward slice from a clamped start": Row(
        "Slice", 10, [(3,), None, None, None, None], [(1,)], constants={1: (-9,), 2: (-9,), 3: (0,), 4: (-1,)}
    ),
    "unknown bounds": Row("Slice", 13, [(2, 9), (1,), (1,), None], [(None, 9)], constants={3: (0,)}),
    "TopK 1 has an attribute": Row("TopK", 1, [(2, 9)], [(2, 3), (2, 3)], {"k": 3}),
    "TopK 10 has an input": Row("TopK", 10, [(2, 9), (1,)], [(2, None), (2, None)]),
    "a new last axis": Row("OneHot", 11, [(2, 3), (), (2,)], [(2, 3, 5)], constants={1: (5,)}),
    "Compress of all elements is one-dimensional": Row("Compress", 11, [(2, 3), (6,)], [(None,)]),
    "Compress of an axis": Row("Compress", 11, [(2, 3), (3,)], [(2, None)], {"axis": 1}),
    "Unique of all elements": Row("Unique", 11, [(2, 3)], [(None,), (None,), (6,), (None,)]),
    "NonZero has one row for each dimension": Row("NonZero", 13, [(2, 3)], [(2, None)]),
    # Values
    "a tensor": Row("Constant", 13, [], [(3,)], {"value": TENSOR}),
    "a number": Row("Constant", 13, [], [()], {"value_float": 1.0}),
    "a list of numbers": Row("Constant", 13, [], [(2,)], {"value_ints": [1, 2]}),
    "a listed shape": Row("ConstantOfShape", 9, [(2,)], [(2, 3)], constants={0: (2, 3)}),
    "a shape of known length": Row("ConstantOfShape", 9, [(2,)], [(None, None)]),
    "a slice of a shape": Row("Shape", 15, [(2, 3, None)], [(2,)], {"start": -2}),
    "a range of integers": Row("Range", 11, [(), (), ()], [(4,)], constants={0: (1,), 1: (9,), 2: (2,)}),
    "a range of floats": Row(
        "Range", 11, [(), (), ()], [(None,)], constants={0: (1.0,), 1: (9.0,), 2: (2.0,)}
    ),
    # Images and signals
    "Upsample 1 has scales for height and width": Row(
        "Upsample", 1, [(1, 3, 4, 5)], [(1, 3, 8, 7)], {"height_scale": 2.0, "width_scale": 1.5}
    ),
    "Upsample 7 has an attribute": Row("Upsample", 7, [(1, 4)], [(1, 8)], {"scales": [1.0, 2.0]}),
    "Upsample 9 has an input": Row("Upsample", 9, [(1, 4), None], [(1, 8)], constants={1: (1.0, 2.0)}),
    "sizes of some axes": Row("Resize", 18, [(1, 4), None, None, None], [(1, 9)], {"axes": [1]}, {3: (9,)}),
    "a size that float32 rounds up": Row("Resize", 10, [(10,), None], [(7,)], constants={1: (0.699999988,)}),
    "unknown scales": Row("Resize", 10, [(1, 4), None], [(None, None)]),
    "an image without its borders": Row("Crop", 1, [(1, 2, 5, 6)], [(1, 2, 4, 3)], {"border": [1, 0, 2, 1]}),
    "a height and a width": Row(
        "Crop", 1, [(1, 2, None, 6)], [(1, 2, 3, 4)], {"border": [1, 0, 0, 0], "scale": [3, 4]}
    ),
    "borders beyond the image": Row(
        "Crop", 1, [(1, 2, 2, 2)], [(1, 2, None, None)], {"border": [2, 2, 2, 2]}
    ),
    "an image of unknown rank": Row("Crop", 1, [None], [(None, None, None, None)], {"border": [1, 1, 1, 1]}),
    "blocks of channels": Row("DepthToSpace", 13, [(1, 8, 2, 3)], [(1, 2, 4, 6)], {"blocksize": 2}),
    "a one-sided spectrum": Row("DFT", 17, [(1, 10, 1)], [(1, 6, 2)], {"onesided": 1}),
    "an inverse transform to a real signal": Row(
        "DFT", 20, [(1, 6, 2)], [(1, 10, 1)], {"onesided": 1, "inverse": 1}
    ),
    # Recurrent networks
    "output and states of an LSTM": Row(
        "LSTM", 7, [(5, 2, 3), None, None], [(5, 1, 2, 4), (1, 2, 4), (1, 2, 4)], {"hidden_size": 4}
    ),
    "a batch as the first dimension": Row(
        "GRU",
        14,
        [(2, 5, 3), None, (2, 12, 4)],
        [(2, 5, 2, 4), (2, 2, 4)],
        {"layout": 1, "direction": "bidirectional"},
    ),
    # Subgraphs
    "branches that agree": Row(
        "If", 11, [()], [(2, None)], {"then_branch": _branch((2, 3)), "else_branch": _branch((2, 4))}
    ),
    "branches of different rank": Row(
        "If", 11, [()], [None], {"then_branch": _branch((2,)), "else_branch": _branch((2, 4))}
    ),
    "a state and a scanned value of a loop": Row(
        "Loop", 11, [(), (), (2, 3)], [(2, None), (None, 7)], {"body": _branch((), (2, 4), (7,))}
    ),
    "a scanned value at its axis": Row(
        "Scan",
        9,
        [(2,), (5, 3)],
        [(2,), (3, 5)],
        {"body": _branch((None,), (3,)), "num_scan_inputs": 1, "scan_output_axes": [-1]},
    ),
    "a scanned value of unknown rank": Row(
        "Scan", 9, [(5, 3)], [None], {"body": helper.make_graph([], "b", [], []), "num_scan_inputs": 1}
    ),
    "Scan 8 has a batch": Row(
        "Scan",
        8,
        [None, (6, 2), (6, 5, 3)],
        [(6, 2), (6, 5, 3)],
        {"body": _branch((2,), (3,)), "num_scan_inputs": 1},
    ),
    # Attention
    "packed heads": Row(
        "Attention",
        23,
        [(1, 4, 24), (1, 6, 12), (1, 6, 30)],
        [(1, 4, 60), (1, 3, 6, 4), (1, 3, 6, 10)],
        {"q_num_heads": 6, "kv_num_heads": 3},
    ),
    # Classical machine learning
    "a class and scores for every sample": Row(
        "LinearClassifier", 1, [(5, 3)], [(5,), (5, None)], domain="ai.onnx.ml"
    ),
    "concatenated features": Row(
        "FeatureVectorizer", 1, [(5, 3), (5, 2)], [(5, 5)], {"inputdimensions": [3, 2]}, domain="ai.onnx.ml"
    ),
    "features of one sample": Row(
        "FeatureVectorizer", 1, [(3,)], [(1, 3)], {"inputdimensions": [3]}, domain="ai.onnx.ml"
    ),
    "features of unknown width": Row("FeatureVectorizer", 1, [(5, 3)], [(5, None)], domain="ai.onnx.ml"),
    "one column for each target": Row(
        "LinearRegressor", 1, [(5, 3)], [(5, 2)], {"targets": 2}, domain="ai.onnx.ml"
    ),
}


def _row_view(row: Row) -> NodeView:
    names = [f"i{position}" for position in range(len(row.inputs))]
    outputs = [f"o{position}" for position in range(len(row.expected))]
    node = helper.make_node(row.op, names, outputs, domain=row.domain, **row.attributes)
    return NodeView(node, REGISTRY.get_schema(row.op, row.opset, row.domain), row.inputs, row.constants)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_rule_infers_the_shapes_of_a_node(row: Row) -> None:
    assert list(_inferred_by_rule(_row_view(row))) == list(row.expected)


# Comparison with ONNX


class Case(NamedTuple):
    """A node of ONNX's own tests with its input values and the shapes of its computed outputs."""

    name: str
    model: ModelProto
    node: NodeProto
    version: OperatorVersion
    arrays: Sequence[Any]
    results: Shapes

    def view(self, *, constants: bool) -> NodeView:
        arrays = self._by_position()
        values = {
            position: tuple(each.ravel().tolist())
            for position, each in arrays.items()
            if constants and each.size <= MAX_CONSTANT_ELEMENTS
        }
        shapes = [tuple(arrays[at].shape) if at in arrays else None for at in range(len(self.node.input))]
        return NodeView(self.node, self.version, shapes, values)

    def _by_position(self) -> dict[int, NumpyArray]:
        values = {each.name: array for each, array in self.tensors()}
        return {at: values[name] for at, name in enumerate(self.node.input) if name in values}

    def tensors(self) -> Iterator[tuple[onnx.ValueInfoProto, NumpyArray]]:
        """Yield the tensor inputs of the graph with their values."""
        for each, value in zip(self.model.graph.input, self.arrays, strict=False):
            if each.type.HasField("tensor_type"):
                yield each, _array(value)


def _cases() -> Iterator[Case]:
    for test in collect_testcases():
        if test.model is None or len(test.model.graph.node) != 1 or not test.data_sets:
            continue
        (node,) = test.model.graph.node
        opsets = {each.domain: each.version for each in test.model.opset_import}
        version = REGISTRY.get_schema(node.op_type, opsets[node.domain], node.domain)
        arrays, outputs = test.data_sets[0]
        listed = dict(zip((each.name for each in test.model.graph.output), outputs, strict=False))
        results = [_shape(listed.get(name)) for name in node.output]
        yield Case(test.name, test.model, node, version, arrays, results)


def _array(value: Any) -> NumpyArray:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def _shape(value: Any) -> Shape | None:
    return None if value is None or isinstance(value, list) else _array(value).shape


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    with np.errstate(all="ignore"):
        return list(_cases())


def _inferred(case: Case, *, constants: bool) -> Shapes:
    """Return the output shapes that ONNX infers without declared shapes."""
    model = ModelProto()
    model.CopyFrom(case.model)
    del model.graph.value_info[:]
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    if constants:
        for each, array in case.tensors():
            if array.size <= MAX_CONSTANT_ELEMENTS and array.dtype != object:
                model.graph.initializer.append(numpy_helper.from_array(array, each.name))
    inferred = onnx.shape_inference.infer_shapes(model)
    types = {
        each.name: _declared_shape(each.type) for each in (*inferred.graph.output, *inferred.graph.value_info)
    }
    return [types.get(name) for name in case.node.output]


@pytest.mark.full
@pytest.mark.parametrize(
    ("constants", "expected"),
    [pytest.param(False, set(), marks=pytest.mark.full), (True, INCONSISTENT_IN_ONNX)],
    ids=["unknown inputs", "small constant inputs"],
)
def test_rules_do_not_contradict_onnx_inference(
    cases: list[Case], constants: bool, expected: set[str]
) -> None:
    contradictions = set()
    known = {"ours": 0, "onnx": 0}
    for case in cases:
        found, inferred = (
            _inferred_by_rule(case.view(constants=constants)),
            _inferred(case, constants=constants),
        )
        known["ours"] += sum(shape is not None for shape in found)
        known["onnx"] += sum(shape is not None for shape in inferred)
        if any(map(_contradicts, found, inferred)):
            contradictions.add(case.name)
    print("outputs of known rank:", known)  # noqa: T201  # shown with -s
    assert contradictions == expected
    assert known["ours"] >= known["onnx"] > 1000


def test_rules_do_not_contradict_computed_outputs(cases: list[Case]) -> None:
    contradictions = [
        (case.name, found, case.results)
        for case in cases
        for constants in (False, True)
        if any(map(_contradicts, found := _inferred_by_rule(case.view(constants=constants)), case.results))
    ]
    assert contradictions == []


def test_rules_do_not_guess_without_information(cases: list[Case]) -> None:
    """Removing dimensions, ranks or constants may only make the inferred shapes less specific."""
    rng = random.Random(7)
    contradictions = [
        (case.name, partial.inputs, partial.constants, found, case.results)
        for case in cases
        for partial in _partial_views(case.view(constants=True), rng)
        if any(map(_contradicts, found := _inferred_by_rule(partial), case.results))
    ]
    assert contradictions == []


def _partial_views(view: NodeView, rng: random.Random) -> Iterator[NodeView]:
    return (_partial_view(view, rng) for _ in range(6))


def _partial_view(view: NodeView, rng: random.Random) -> NodeView:
    ranks, dims, values = (rng.choice([0.0, 0.3, 0.7, 1.0]) for _ in range(3))
    inputs = [
        None
        if shape is None or rng.random() < ranks
        else tuple(None if rng.random() < dims else dim for dim in shape)
        for shape in view.inputs
    ]
    constants = {
        at: tuple(None if rng.random() < values / 2 else each for each in found)
        for at, found in view.constants.items()
        if rng.random() >= values
    }
    return replace(view, inputs=inputs, constants=constants)


# Invalid nodes

SAMPLE_SHAPES: Sequence[Shape | None] = [
    None,
    (),
    (0,),
    (1,),
    (2, None),
    (3, 0, 2),
    (None,) * 4,
    (1, 2, 3, 4, 5),
]
SAMPLE_VALUES: Sequence[Any] = [
    -9, -1, 0, 1, 2**40, 0.5, float("nan"), b"", b"NOTSET", b"i,j->...k", (), (0,), (-1, 2),
    (1.5, 2.5, 0.0), (b"a",), TENSOR,
]  # fmt: skip
SAMPLE_CONSTANTS: Sequence[Any] = [
    None,
    (),
    (0,),
    (None,),
    (-5, 2),
    (1.5, float("inf")),
    (b"x", 1),
    (1, 2, 3, 4),
]


@dataclass(frozen=True)
class RandomView(NodeView):
    """View of a node with arbitrary attributes."""

    attributes: Mapping[str, Any]

    def attribute(self, name: str) -> Any:
        return self.attributes.get(name)

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        return SAMPLE_SHAPES[(len(attribute) + position) % len(SAMPLE_SHAPES)]


def _random_view(version: OperatorVersion, rng: random.Random) -> RandomView:
    counts = rng.randrange(7), rng.randrange(5)
    node = helper.make_node("Odd", *([str(n) for n in range(count)] for count in counts))
    inputs = [rng.choice(SAMPLE_SHAPES) for _ in range(counts[0])]
    constants = {n: value for n in range(5) if (value := rng.choice(SAMPLE_CONSTANTS)) is not None}
    attributes = {name: rng.choice(SAMPLE_VALUES) for name in version.attributes if rng.random() < 0.7}
    return RandomView(node, version, inputs, constants, attributes)


@pytest.mark.parametrize("name", sorted(SHAPE_RULES))
def test_a_rule_returns_valid_shapes_for_random_nodes(name: str) -> None:
    rng = random.Random(name)
    for version in (each for each in VERSIONS if each.shape == name):
        for _ in range(60):
            view = _random_view(version, rng)
            found = SHAPE_RULES[name](view)
            assert len(found) <= view.output_count
            dims = [dim for shape in found if shape is not None for dim in shape]
            assert all(dim is None or (type(dim) is int and dim >= 0) for dim in dims), view
