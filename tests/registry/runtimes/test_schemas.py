"""Schemas of releases of onnxruntime that differ from the definitions of com.microsoft."""

from __future__ import annotations

import onnx.parser
import onnxruntime
import pytest

import import_schema_differences
from opshift.registry.record import from_plain_data
from opshift.registry.runtimes.files import get_runtime, runtime_files
from opshift.registry.runtimes.runtime import SchemaDifference
from opshift.runtimes.check_support import check_support

NAME = f"onnxruntime-{onnxruntime.__version__}"


@pytest.mark.skipif(NAME not in runtime_files(), reason=f"no file of {NAME}")
def test_the_differences_are_those_of_the_installed_release() -> None:
    found = import_schema_differences.schema_differences(import_schema_differences.list_schemas([]))
    records = {name: from_plain_data(SchemaDifference, each) for name, each in found.items()}
    assert records == get_runtime(NAME).schemas


def test_other_runtimes_do_not_validate_nodes() -> None:
    assert not get_runtime("tract-0.23.9").validates_nodes


ROTARY = "y = com.microsoft.RotaryEmbedding <num_heads = 2> (x, p, c, c)"

CASES = [
    (ROTARY, "onnxruntime-1.16.3", "it has no attribute `num_heads`"),
    (ROTARY, "onnxruntime-1.17.3", ""),
    (ROTARY, "onnxruntime-cuda-1.16.3", "it has no attribute `num_heads`"),
    ("y = com.microsoft.MatMulNBits <K = 16, N = 16, block_size = 16> (x, b, s)", "onnxruntime-1.20.1",
     "it requires the attribute `bits`"),
    ("y = com.microsoft.Gelu <alpha = 1.0> (x)", "onnxruntime-1.31.1", "it has no attribute `alpha`"),
    ("y = com.microsoft.Gelu (x, x)", "onnxruntime-1.31.1", "it has 1 inputs, not 2"),
    ("y = com.microsoft.MoE <k = 1, swiglu_limit_after_activation = 1> (x, r, w, , w)", "onnxruntime-1.31.1",
     "it has no attribute `swiglu_limit_after_activation`"),
    ("y = Relu <alpha = 1.0> (x)", "onnxruntime-1.31.1", "it has no attribute `alpha`"),
    ("y = Relu <__alpha = 1.0> (x)", "onnxruntime-1.31.1", ""),
    ("y = LeakyRelu <alpha = 1> (x)", "onnxruntime-1.31.1", "the attribute `alpha` must be FLOAT"),
    ("y = LeakyRelu <alpha = 1> (x)", "tract-0.23.9", ""),
    ("y = com.microsoft.DequantizeLinear (q, z)", "onnxruntime-1.16.3", "it has 3 inputs, not 2"),
    ("y = com.microsoft.DequantizeLinear (i, z, i)", "onnxruntime-1.16.3",
     "`x` must be int8 or uint8, not int32"),
    ("y = Cast (x)", "onnxruntime-1.31.1", "it requires the attribute `to`"),
]  # fmt: skip


@pytest.mark.parametrize(("node", "runtime", "problem"), CASES)
def test_refuses_nodes_that_the_schema_does_not_allow(node: str, runtime: str, problem: str) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
    main (float[1, 4, 16] x, int64[1, 4] p, int32[4] i, float[4, 4] r, float[8, 4] c,
        uint8[16, 1, 8] b, float[16] s, float z, float[1, 16, 16] w, int8[4] q, int8 o)
        => (float[1, 4, 16] y)
    {{ {node} }}""")
    found = [each.reason for each in check_support(model, get_runtime(runtime))]
    if problem:
        operator = node.split()[2]
        operator = operator if "." in operator else f"ai.onnx.{operator}"
        assert found == [f"{runtime} refuses the node: in its schema of {operator}, {problem}"]
    else:
        assert found == []
