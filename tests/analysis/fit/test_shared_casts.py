"""Nodes that compute in another element type share the casts of a value."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from support.execution import assert_equal, run
from support.runtimes import fictional_runtime

from opshift import fit
from opshift.model.graphs import nested_nodes
from opshift.registry.runtimes.runtime import Kernel

X = np.linspace(-2, 2, 4).astype(np.float16)

KERNELS = {
    **{
        f"ai.onnx.{name}": (Kernel(versions=(1, 99), types={"T": ("tensor(float)",)}),)
        for name in ("Add", "Sub")
    },
    **{f"ai.onnx.{name}": (Kernel(versions=(1, 99)),) for name in ("Cast", "Constant", "If", "Identity")},
}

RUNTIME = fictional_runtime(operators=KERNELS, opsets={"ai.onnx": 22}, ir_version=10)

GRAPHS = {
    "several readers": ("a = Add (x, x) b = Sub (x, x) y = Identity (b)", 1),
    "two types of casts": ("d = Cast <to = 11> (x) a = Add (x, x) b = Sub (x, x) y = Identity (b)", 2),
    "own cast": ("f = Cast <to = 1> (x) a = Add (x, x) b = Sub (x, x) y = Identity (b)", 1),
    "own casts": ("f = Cast <to = 1> (x) g = Cast <to = 1> (x) a = Add (x, x) y = Identity (a)", 2),
    "chain": ("a = Add (x, x) b = Sub (a, x) y = Add (b, a)", 3),
    "reader in a subgraph": (
        """a = Add (x, x) c = Constant <value = bool {1}> ()
        y = If (c) <then_branch = t () => (float16[4] p) { p = Sub (x, x) },
                    else_branch = e () => (float16[4] q) { r = Sub (x, x) q = Add (x, r) }>""",
        4,
    ),
}
"""Nodes that read `x`, and the number of casts that remain except those back to float16."""


@pytest.mark.parametrize(("nodes", "casts"), GRAPHS.values(), ids=GRAPHS)
def test_casts_a_value_once_in_a_graph(nodes: str, casts: int) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]> g (float16[4] x) => (float16[4] y) {{ {nodes} }}"""
    )
    fitted, report = fit(model.SerializeToString(), RUNTIME)
    result = onnx.ModelProto.FromString(fitted)
    onnx.checker.check_model(result, full_check=True)
    found = [each for each in nested_nodes(result.graph) if each.op_type == "Cast"]
    assert sum(each.attribute[0].i != onnx.TensorProto.FLOAT16 for each in found) == casts
    before, after = (len([*nested_nodes(each.graph)]) for each in (model, result))
    assert report.nodes == (before, after)
    assert report.cost == after - before
    assert_equal(run(result, {"x": X}), run(model, {"x": X}), 0)


@pytest.mark.parametrize("field", ["input", "output"])
def test_keeps_an_invalid_cast(field: str) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float16[4] x) => (float16[4] y) {
          unused = Cast <to = 1> (x)
          y = Identity (x)
        }"""
    )
    model.graph.node[0].ClearField(field)
    assert fit(model, RUNTIME).model.graph.node[0] == model.graph.node[0]


@pytest.mark.parametrize("element_type", ["bool", "uint8", "int32"])
def test_adds_no_casts_to_nodes_that_are_refused_for_other_reasons(element_type: str) -> None:
    # OpenVINO refuses GatherND because the sizes of the indices are unknown
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 13]> g ({element_type}[N, M] x, int64[K, L, 2] i)
        => ({element_type}[K, L] y) {{ y = GatherND (x, i) }}"""
    )
    fitted, report = fit(model.SerializeToString(), "openvino-2026.4.1")
    result = onnx.ModelProto.FromString(fitted)
    assert report.bridges == ()
    assert "GatherND" not in {each.op_type for each in result.graph.node}
    values = np.array([[0, 1, 1], [1, 0, 1]])
    feeds = {"x": values.astype(element_type), "i": np.array([[[0, 1], [1, -2]]])}
    assert_equal(run(result, feeds), run(model, feeds), 0)
