"""`opshift fit`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest
from typer.testing import Result

Run = Callable[..., Result]

MODEL = """
    <ir_version: 13, opset_import: ["" : 24]>
    main (bfloat16[N] x) => (bfloat16[N] y) { h = Add (x, x) y = Swish (h) }
"""

IMPOSSIBLE = """
    <ir_version: 10, opset_import: ["" : 20]>
    main (uint8[N] x) => (uint8[A, B, 3] y) { y = ImageDecoder (x) }
"""


COMPUTED_AXES = """
    <ir_version: 10, opset_import: ["" : 20]>
    main (float[3, 4] x, int64[1] axes) => (float[3, 1] y) { y = ReduceSum (x, axes) }
"""


LACKING_TYPES = """
    <ir_version: 10, opset_import: ["" : 21]>
    main (bfloat16[N] x) => (bfloat16[N] y) { y = Add (x, x) }
"""


@pytest.fixture
def model(folder: Path) -> str:
    onnx.save(onnx.parser.parse_model(MODEL), folder / "model.onnx")
    onnx.save(onnx.parser.parse_model(IMPOSSIBLE), folder / "impossible.onnx")
    return "model.onnx"


def test_writes_a_fitted_model(run: Run, model: str) -> None:
    done = run("fit", model, "out.onnx", "--runtime", "onnxruntime-1.20.1")
    assert done.exit_code == 0, done.stderr
    lines = [" ".join(each.split()) for each in done.stdout.splitlines()]
    assert lines[:5] == [
        "model.onnx -> out.onnx",
        "runtime onnxruntime-1.20.1",
        "opset 24 -> 21",
        "IR version 13 -> 10",
        "nodes 2 -> 9",
    ]
    assert "ai.onnx.Add:14: T in float instead of bfloat16" in lines
    assert onnx.load("out.onnx").opset_import[0].version == 21
    assert run("runs", "out.onnx", "--runtime", "onnxruntime-1.20.1").exit_code == 0


def test_prints_json_and_writes_in_place(run: Run, model: str) -> None:
    done = run("fit", model, "--in-place", "-r", "onnxruntime-1.20.1", "--format", "json")
    found = json.loads(done.stdout)
    assert found["opsets"] == {"ai.onnx": 21}
    assert found["nodes"] == [2, 9]
    assert onnx.load(model).ir_version == 10


def test_lists_nodes_that_prevent_it(run: Run, model: str) -> None:
    failed = run("fit", "impossible.onnx", "out.onnx", "-r", "onnxruntime-1.20.1")
    assert failed.exit_code == 1
    text = " ".join(failed.stderr.split())
    assert "onnxruntime-1.20.1 does not run 1 node of the model, even at the best opset, " in text
    assert "no kernel of ai.onnx.ImageDecoder" in text
    assert "choose another runtime" in text
    assert not Path("out.onnx").exists()
    failed = run("fit", "impossible.onnx", "out.onnx", "-r", "onnxruntime-1.20.1", "--format", "json")
    (missing,) = json.loads(failed.stdout)["missing"]
    assert missing["places"] == ["graph, node ImageDecoder -> y"]


def test_lists_assumptions(run: Run, folder: Path) -> None:
    onnx.save(onnx.parser.parse_model(COMPUTED_AXES), folder / "axes.onnx")
    reason = "the declared shape [3, 1] of 'y' admits no other result"
    assumption = f"graph, node ReduceSum -> y: `axes` becomes [1]: {reason}"
    done = run("fit", "axes.onnx", "out.onnx", "-r", "tract-0.23.9")
    assert f"Assumptions {assumption}" in " ".join(done.stdout.split())
    done = run("fit", "axes.onnx", "out.onnx", "--force", "-r", "tract-0.23.9", "--format", "json")
    assert json.loads(done.stdout)["assumptions"] == [assumption]


def test_widens_types_of_inputs_and_outputs(run: Run, folder: Path) -> None:
    onnx.save(onnx.parser.parse_model(LACKING_TYPES), folder / "types.onnx")
    failed = run("fit", "types.onnx", "out.onnx", "-r", "tract-0.23.9")
    assert failed.exit_code == 1
    remedy = "give inputs and outputs wider types with --allow interface-types (allow= in Python): "
    assert f"{remedy}input 'x': float instead of bfloat16, and 1 more" in " ".join(failed.stderr.split())
    options = ("-r", "tract-0.23.9", "--allow", "interface-types")
    done = run("fit", "types.onnx", "out.onnx", *options)
    lines = [" ".join(each.split()) for each in done.stdout.splitlines()]
    start = lines.index("Types of inputs and outputs") + 1
    assert lines[start : start + 2] == [
        "input 'x': float instead of bfloat16",
        "output 'y': float instead of bfloat16",
    ]
    assert "all operators: float instead of bfloat16" in lines
    done = run("fit", "types.onnx", "out.onnx", "--force", *options, "--format", "json")
    assert json.loads(done.stdout)["interface"][1] == {
        "kind": "output",
        "name": "y",
        "before": "bfloat16",
        "after": "float",
    }


def test_refuses_an_unknown_runtime(run: Run, model: str) -> None:
    failed = run("fit", model, "out.onnx", "-r", "onnxruntime-0.9")
    assert failed.exit_code == 2
    assert "no data about the runtime" in failed.stderr


PROVIDERS = (
    "onnxruntime-coreml",
    "onnxruntime-webnn",
    "winml-qnn-npu",
    "winml-tensorrt-rtx",
    "onnxruntime-cuda-1.31",
)
FALLING_BACK = """
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) {
        c = Constant <value_float = 2.0> ()
        y = Mul (x, c)
        axis = Constant <value_int = 1> ()
        z = CumSum (y, axis)
    }
"""


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_node_runs_on_the_provider(run: Run, folder: Path, provider: str) -> None:
    text = FALLING_BACK.replace(", float[N, 4] z", "").replace("z = CumSum (y, axis)", "")
    onnx.save(onnx.parser.parse_model(text), folder / "model.onnx")
    done = run("fit", "model.onnx", "out.onnx", "-r", provider, "--provider-only")
    assert done.exit_code == 0, done.stderr


def test_lists_nodes_that_the_provider_leaves_to_another_runtime(run: Run, folder: Path) -> None:
    onnx.save(onnx.parser.parse_model(FALLING_BACK), folder / "model.onnx")
    options = ("fit", "model.onnx", "out.onnx", "-r", "onnxruntime-coreml")
    assert run(*options).exit_code == 0
    refused = run(*options, "--force", "--provider-only")
    assert refused.exit_code == 1
    assert "onnxruntime-coreml-1.32.0 does not run 1 node of the model" in refused.stderr
    assert "even at the best opset, 17;" in refused.stderr
    assert "onnxruntime-coreml-1.32.0 has no kernel of ai.onnx.CumSum" in refused.stderr
    assert "CumSum:14  graph, node CumSum -> z" in refused.stderr


KNOWN_SIZES = """
    <ir_version: 9, opset_import: ["": 17]>
    test (float[2, 3] x) => (float[2, 3] y) {
        sizes = Shape (x)
        z = Reshape (x, sizes)
        y = Relu (z)
    }
"""


COUNTED = """
    <ir_version: 9, opset_import: ["": 17]>
    test (float[N, 3] x) => (float[N, 3] y) { s = Size (x) count = Cast <to = 1> (s) y = Mul (x, count) }
"""


def test_folds_computations_of_sizes_first(run: Run, folder: Path) -> None:
    onnx.save(onnx.parser.parse_model(KNOWN_SIZES), folder / "model.onnx")
    options = ("fit", "model.onnx", "out.onnx", "-r", "nnapi", "--provider-only")
    assert "has no kernel of ai.onnx.Shape" in run(*options).stderr
    done = run(*options, "--fold", "--verify")
    assert done.exit_code == 0, done.stderr
    assert "folding: 1 of 3 nodes remain" in done.stdout
    assert [each.op_type for each in onnx.load(folder / "out.onnx").graph.node] == ["Relu"]
    data = json.loads(run(*options, "--fold", "--force", "--format", "json").stdout)
    assert data["folding"]["repairs"] == ["folding: 1 of 3 nodes remain"]


def test_folds_sizes_of_declared_shapes(run: Run, folder: Path) -> None:
    onnx.save(onnx.parser.parse_model(COUNTED), folder / "model.onnx")
    options = ("fit", "model.onnx", "out.onnx", "-r", "nnapi", "--provider-only", "--fold")
    assert "has no kernel of ai.onnx.Size" in run(*options).stderr
    done = run(*options, "--shape", "x=2,?", "--verify")
    assert done.exit_code == 0, done.stderr
    notes = " ".join(done.stdout.split())
    assert "Declared shapes input 'x' is declared as [2, 3] instead of [N, 3]" in notes
    assert "Folding folding: 1 value becomes a constant, and 1 of 3 nodes remain" in notes
    assert notes.count("is declared as") == 1
    assert [each.op_type for each in onnx.load("out.onnx").graph.node] == ["Mul"]


@pytest.mark.parametrize("runtime", ["onnxruntime-1.31", "tensorrt", "onnxruntime-tensorrt"])
def test_provider_only_changes_nothing_for_runtimes_without_fallback(
    run: Run, folder: Path, runtime: str
) -> None:
    onnx.save(onnx.parser.parse_model(FALLING_BACK), folder / "model.onnx")
    plain, only = (
        run("fit", "model.onnx", f"{name}.onnx", "-r", runtime, *options)
        for name, options in (("plain", ()), ("only", ("--provider-only",)))
    )
    assert only.exit_code == plain.exit_code
    assert only.stderr == plain.stderr
    if plain.exit_code == 0:
        assert (folder / "only.onnx").read_bytes() == (folder / "plain.onnx").read_bytes()
