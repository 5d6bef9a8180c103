"""Time of single recognized operators in runtimes, against the nodes that express them.

`python recognized_operators.py [OPERATOR...]` expands a node of each operator, fits the nodes to a runtime
with and without recognition, and prints the ratio of the CPU times. Rows above `LIMIT` are candidates for
`slow_kernels` in the file of the runtime. Needs the modules of `recognized_inference.py`.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import onnx
from onnx import parser

import opshift
from recognized_inference import LOADS, RUNTIMES, Feeds, arrays_of, difference_of, minima

OPSET = 24

ROWS = "float[8, 128, 768] x"

IMAGE = "float[2, 64, 32, 32] x"

NODES = {
    "Attention": [
        "y = Attention (float[1, 12, 197, 64] x, float[1, 12, 197, 64] k, float[1, 12, 197, 64] v)",
        "y = Attention (float[2, 8, 128, 64] x, float[2, 8, 128, 64] k, float[2, 8, 128, 64] v, "
        "float[1, 1, 128, 128] m)",
        "y = Attention (float[64, 3, 49, 32] x, float[64, 3, 49, 32] k, float[64, 3, 49, 32] v, "
        "float[1, 3, 49, 49] m)",
        "y = Attention (float[1, 32, 1, 64] x, float[1, 32, 512, 64] k, float[1, 32, 512, 64] v, "
        "float[1, 1, 1, 512] m)",
        "y = Attention (float[1, 32, 64, 64] x, float[1, 8, 64, 64] k, float[1, 8, 64, 64] v)",
        "y = Attention <q_num_heads = 12, kv_num_heads = 12> (float[2, 128, 768] x, float[2, 128, 768] k, "
        "float[2, 128, 768] v)",
    ],
    "LayerNormalization": [f"y = LayerNormalization ({ROWS}, float[768] scale, float[768] bias)"],
    "RMSNormalization": [f"y = RMSNormalization ({ROWS}, float[768] scale)"],
    "GroupNormalization": [
        f"y = GroupNormalization <num_groups = 8> ({IMAGE}, float[64] scale, float[64] bias)"
    ],
    "MeanVarianceNormalization": [f"y = MeanVarianceNormalization ({IMAGE})"],
    "Gelu": [f"y = Gelu ({ROWS})", f'y = Gelu <approximate = "tanh"> ({ROWS})'],
    "RotaryEmbedding": [
        "y = RotaryEmbedding (float[2, 8, 128, 64] x, float[2, 128, 32] cos, float[2, 128, 32] sin)"
    ],
    "AffineGrid": ["y = AffineGrid (float[2, 2, 3] x, size)"],
    "DepthToSpace": [f"y = DepthToSpace <blocksize = 2> ({IMAGE})"],
    "SpaceToDepth": [f"y = SpaceToDepth <blocksize = 2> ({IMAGE})"],
    "DynamicQuantizeLinear": [f"y, scale, zero = DynamicQuantizeLinear ({ROWS})"],
    "PRelu": [f"y = PRelu ({ROWS}, float[768] slope)"],
    "GreaterOrEqual": [f"y = GreaterOrEqual ({ROWS}, float[8, 128, 768] b)"],
    "LessOrEqual": [f"y = LessOrEqual ({ROWS}, float[8, 128, 768] b)"],
    **{
        name: [f"y = {name} ({ROWS})"]
        for name in (
            "Celu", "Elu", "HardSigmoid", "HardSwish", "LeakyRelu", "LogSoftmax", "Mish", "ReduceL1",
            "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "Relu", "Selu", "Shrink",
            "Softmax", "Softplus", "Softsign", "Swish", "ThresholdedRelu",
        )
    },
}  # fmt: skip
"""Nodes of each operator, with inputs as models of practical size have them."""


def main() -> None:
    """Print a row for each node and runtime, and the ratios of each operator."""
    ratios: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    print("| node | runtime | nodes | time after / before | difference |\n|---|---|---|---|---|", flush=True)
    for operator, nodes in NODES.items():
        if sys.argv[1:] and operator not in sys.argv[1:]:
            continue
        for node in nodes:
            for runtime in RUNTIMES:
                try:
                    ratio, row = measured(node, operator, runtime)
                except Exception as error:  # runtimes do not support all nodes
                    ratio, row = None, f"{error!s:.100}".replace("\n", " ")
                if ratio is not None:
                    ratios[runtime, operator].append(ratio)
                print(f"| {node.partition(' = ')[2]} | {runtime} | {row} |", flush=True)
    for (runtime, operator), found in ratios.items():
        print(f"{runtime}, {operator}: median {statistics.median(found):.2f}, maximum {max(found):.2f}")


def measured(node: str, operator: str, runtime: str) -> tuple[float | None, str]:
    """Return the ratio of the times and the rest of a row; no ratio if the runtime has no kernel."""
    model = model_of(node)
    expanded = opshift.convert_version(model, without=f"ai.onnx.{operator}", allow=("approximate", "large"))
    plain = opshift.fit(expanded, runtime, allow="approximate").model
    fitted = opshift.fit(expanded, runtime, recognize=operator, allow="approximate").model
    if all(each.op_type != operator for each in fitted.graph.node):
        return None, f"{len(plain.graph.node)} | not recognized |"
    random = np.random.default_rng(0)
    feeds: Feeds = {
        each.name: random.standard_normal(
            [dim.dim_value for dim in each.type.tensor_type.shape.dim], np.float32
        )
        for each in model.graph.input
    }
    least = [float("inf")] * 2
    with tempfile.TemporaryDirectory() as folder:
        written = [str(Path(folder, f"{index}.onnx")) for index in range(2)]
        onnx.save(plain, written[0])
        onnx.save(fitted, written[1])
        for _ in range(LOADS):
            runners = [RUNTIMES[runtime](path, feeds) for path in written]
            difference = difference_of(*(arrays_of(run()) for run in runners))
            least = [min(pair) for pair in zip(least, minima(runners), strict=True)]
    ratio = least[1] / least[0]
    return ratio, f"{len(plain.graph.node)} -> {len(fitted.graph.node)} | {ratio:.2f} | {difference:.0e}"


def model_of(node: str) -> onnx.ModelProto:
    """Return a model of one node, whose text declares its inputs."""
    head, _, operands = node.partition("(")
    given = [each.strip() for each in operands.rstrip(")").replace(", float", "; float").split("; ")]
    inputs = [each.removesuffix(", size") for each in given]
    names = [each.rpartition(" ")[2] for each in given]
    size = "size = Constant <value = int64[4] {2, 3, 64, 64}> ()" if names[-1] == "size" else ""
    if size:
        names = [inputs[0].rpartition(" ")[2], "size"]
    text = f"""
        <ir_version: 10, opset_import: ["": {OPSET}]>
        main ({", ".join(inputs)}) => (float y) {{ {size} {head} ({", ".join(names)}) }}
    """
    model = parser.parse_model(text)
    model.graph.output[0].ClearField("type")
    return model


if __name__ == "__main__":
    main()
