"""Shapes that a model claims for the outputs of nodes: inference wins over a claim that contradicts it.

Editors of models leave such claims behind, for example when they make the batch dynamic. Runtimes ignore
them, so a conversion that believed them would change the outputs without a word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from support.execution import Array, assert_equal, run

from opshift import ConversionRefused, convert_version
from opshift.inference.symbols import merge_claim, symbol_named
from opshift.model.graphs import nested_containers

FLOATS = np.arange(12, dtype=np.float32).reshape(4, 3) - 5


class Case(NamedTuple):
    """Node that reads `z` of shape [N, 3], which the model claims to be [2, 3], and a target opset."""

    node: str
    opset: int
    target: int
    output: str = "float[a,b] y"
    weights: str = ""


CASES = {
    "Gather": Case("y = Gather <axis = 0> (z, i)", 11, 10, weights="int64[1] i = {-1}"),
    "GatherElements": Case(
        "y = GatherElements <axis = 0> (z, i)", 11, 10, weights="int64[1,3] i = {-1,-1,-1}",
    ),
    "ScatterElements": Case(
        "y = ScatterElements <axis = 0> (z, i, u)", 11, 10,
        weights="int64[1,3] i = {-1,-1,-1}, float[1,3] u = {7,8,9}",
    ),
    "EyeLike": Case("y = EyeLike (z)", 9, 8),
    "CumSum": Case("y = CumSum <reverse = 1> (z, i)", 11, 10, weights="int64 i = {0}"),
    "Slice": Case(
        "y = Slice (z, starts, ends, axes, steps)", 11, 9,
        weights="int64[1] starts = {-1}, int64[1] ends = {-100}, int64[1] axes = {0}, int64[1] steps = {-1}",
    ),
    "CenterCropPad": Case("y = CenterCropPad <axes = [0]> (z, i)", 18, 17, weights="int64[1] i = {3}"),
    "Resize": Case(
        'y = Resize <mode = "nearest", axes = [0], keep_aspect_ratio_policy = "not_larger"> (z, , , i)',
        18, 17, weights="int64[1] i = {8}",
    ),
    "Trilu": Case("y = Trilu (z)", 14, 13),
    "Where": Case("c = Greater (z, zero) y = Where (c, z, zero)", 9, 8, weights="float zero = {0}"),
    "Shrink": Case("y = Shrink <lambd = 1.5> (z)", 9, 8),
}  # fmt: skip


def model_of(case: Case, size: str = "N") -> onnx.ModelProto:
    weights = f"<{case.weights}>" if case.weights else ""
    text = f"g (float[{size},3] x) => ({case.output}) {weights} {{ z = Relu (x) {case.node} }}"
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {case.opset}]> {text}')


def claim(graph: onnx.GraphProto, shape: list[int | str]) -> None:
    graph.value_info.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, shape))


def outputs_of(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """Run a model without its claims: onnxruntime rejects those of a wrong rank."""
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    for graph in nested_containers([plain.graph]):
        del graph.value_info[:]
    return run(plain, feeds)


def convert_and_compare(model: onnx.ModelProto, target: int, feeds: dict[str, Array]) -> None:
    """Compare the outputs of a conversion with those before; a refusal is an answer, too."""
    try:
        converted = convert_version(model, target)
    except ConversionRefused:
        return
    assert_equal(outputs_of(converted, feeds), outputs_of(model, feeds))


@pytest.mark.parametrize("size", ["N", "", "4"])
@pytest.mark.parametrize("claimed", [[2, 3], [4, 1], [1], ["N", 3]], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_inference_wins_over_claims(name: str, claimed: list[int | str], size: str) -> None:
    model = model_of(CASES[name], size or "N")
    if not size:
        model.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    claim(model.graph, claimed)
    convert_and_compare(model, CASES[name].target, {"x": FLOATS})


@pytest.mark.parametrize("name", CASES)
def test_inference_wins_over_declared_outputs(name: str) -> None:
    model = model_of(CASES[name]._replace(output="float[9,9] y"))
    convert_and_compare(model, CASES[name].target, {"x": FLOATS})


@pytest.mark.parametrize("name", CASES)
def test_inference_wins_over_claims_in_branches(name: str) -> None:
    model = model_of(CASES[name])
    branch = onnx.GraphProto(name="branch")
    branch.node.extend(model.graph.node)
    branch.output.extend(model.graph.output)
    claim(branch, [2, 3])
    del model.graph.node[:]
    model.graph.input.append(helper.make_tensor_value_info("cond", onnx.TensorProto.BOOL, []))
    model.graph.node.append(helper.make_node("If", ["cond"], ["r"], then_branch=branch, else_branch=branch))
    model.graph.output[0].name = "r"
    convert_and_compare(model, CASES[name].target, {"x": FLOATS, "cond": np.array(True)})


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("sizes", ["3,5", "2,4", "7,3"])
def test_infers_sizes_under_an_aspect_ratio_policy(policy: str, sizes: str) -> None:
    """The declared output repeats the requested sizes, of which the policy changes one."""
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 19]> g (float[1,1,2,4] x) => (float[1,1,{sizes}] y)'
        f' <int64[2] s = {{{sizes}}}> {{ y = Resize <axes = [2, 3], keep_aspect_ratio_policy = "{policy}",'
        ' mode = "nearest", coordinate_transformation_mode = "asymmetric"> (x, , , s) }'
    )
    feeds = {"x": np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)}
    assert_equal(run(convert_version(model, 17), feeds), run(model, feeds))


def _halfway_model(ratio: tuple[int, int], size: int, declared: str, policy: str) -> onnx.ModelProto:
    numerator, denominator = ratio
    other = 10**6 if policy == "not_larger" else 1
    weights = (
        f"<int64[2] s = {{{numerator}, {other}}}, int64 k = {{-1}}, float[1,1,{numerator},{declared}] z>"
    )
    attributes = f'axes = [2, 3], keep_aspect_ratio_policy = "{policy}", mode = "linear"'
    return parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 19]>'
        f" g (float[1,1,{denominator},{size}] x) => (float[a,b,c,d] y) {weights}"
        f" {{ z = Resize <{attributes}> (x, , , s) y = CumSum (z, k) }}"
    )


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("declared", ["0", "exact", "below", "40", "N"])
@pytest.mark.parametrize(
    ("ratio", "size", "exact"),
    [((7, 2), 3, 11), ((13, 6), 27, 59), ((23, 10), 25, 58), ((26, 12), 27, 59), ((5, 6), 9, 8)],
)
def test_computes_sizes_halfway_between_integers(
    ratio: tuple[int, int], size: int, exact: int, declared: str, policy: str
) -> None:
    claims = {"exact": f"{exact}", "below": f"{exact - 1}"}
    model = _halfway_model(ratio, size, claims.get(declared, declared), policy)
    feeds = {"x": np.arange(ratio[1] * size, dtype=np.float32).reshape(1, 1, ratio[1], size)}
    result = convert_version(model, 17, allow="approximate")
    assert_equal(outputs_of(result, feeds), outputs_of(model, feeds))
    assert outputs_of(result, feeds)[0].shape[3] == exact


@pytest.mark.parametrize("declared", ["31", "32", "N"])
@pytest.mark.parametrize(("ratio", "size"), [((7, 6), 27), ((21, 10), 15), ((14, 12), 27)])
def test_refuses_sizes_that_runtimes_round_differently(
    ratio: tuple[int, int], size: int, declared: str
) -> None:
    model = _halfway_model(ratio, size, declared, "not_larger")
    with pytest.raises(ConversionRefused, match="close to a midpoint of two integers"):
        convert_version(model, 17, allow="approximate")


def test_claim_that_contradicts_one_size_is_ignored_as_a_whole() -> None:
    assert merge_claim((2, None), (3, 5)) == (2, None)
    assert merge_claim((2, None), (2, 5)) == (2, 5)
    assert merge_claim((None, None), (3, 5, 7)) == (None, None)
    symbol = symbol_named("N")
    assert merge_claim((symbol, None), (3, 5)) == (symbol, 5)
