"""Element types of whole models: exports and quantized models in float16 and bfloat16, and large weights.

`python element_types.py FOLDER... --other PYTHON` converts the models of folders, and ten quantized ones, to
float16 by opshift and by onnxconverter-common, which PYTHON has, and counts the results within 1e-2 of the
original. A conversion to bfloat16 and back to float has to equal the original with the weights of the
bfloat16 model, bit by bit. Needs onnxruntime; writes TYPES.md. `architectures.py` exports models.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, numpy_helper
from onnxruntime import quantization

import opshift
from commands import command
from jobs import OURS
from machine import facts
from measuring import HERE, processes_in_turn
from tables import Cell, Table, at_most
from weights import write_external, write_heavy

RESULTS = HERE / "TYPES.md"
TOLERANCE = 1e-2
"""Relative and absolute tolerance of float16."""
QUANTIZED = 10
"""Number of models that are quantized: every second one keeps its activations in float."""
BFLOAT16_OPSET = 22
"""Opset at which models get bfloat16: LSTM and pooling have it since opset 22."""
MOST_MEMORY = 100.0
"""Limit in MiB of a conversion of 3 GiB of weights."""
THEIRS = "onnxconverter-common"
OTHER = """
import sys, onnx
from onnxconverter_common import float16
onnx.save(float16.convert_float_to_float16(onnx.load(sys.argv[1])), sys.argv[2])
"""


class Samples(quantization.CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
    """One random input of a model, with 2 for each dynamic dimension."""

    def __init__(self, path: Path) -> None:
        generator = np.random.default_rng(0)
        inputs = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).get_inputs()
        self.values = iter([{each.name: _sample(each, generator) for each in inputs}])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.values, None)


def _sample(value: onnxruntime.NodeArg, generator: np.random.Generator) -> np.ndarray:
    sizes = {"height": 64, "width": 64}
    shape = [each if isinstance(each, int) else sizes.get(each, 2) for each in value.shape]
    if value.type == "tensor(float)":
        return generator.standard_normal(shape, np.float32)
    return generator.integers(0, 2, shape, np.int64)


def quantized(models: Iterable[Path], folder: Path) -> Iterator[Path]:
    """Write a quantized copy of each model: weights, and of every second one activations, too."""
    for position, path in enumerate(models):
        result = folder / f"{path.stem}, quantized.onnx"
        if position % 2:
            quantization.quantize_static(path, result, Samples(path))
        else:
            quantization.quantize_dynamic(path, result)
        yield result


def half(path: Path) -> onnx.ModelProto | None:
    """Return a model in float16."""
    try:
        return opshift.convert_types(onnx.load(path), "float=float16", allow=("approximate", "clamp"))
    except opshift.ConversionRefused:
        return None


def half_by(python: str, path: Path) -> onnx.ModelProto | None:
    """Return a model in float16 by onnxconverter-common."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "half.onnx")
        done = subprocess.run([python, "-c", OTHER, str(path), str(result)], capture_output=True, check=False)
        return onnx.load(result) if done.returncode == 0 else None


def outcome(original: Path | onnx.ModelProto, converted: onnx.ModelProto | None, tolerance: float) -> str:
    """Return `same`, or the fault of a conversion."""
    if converted is None:
        return "not converted"
    try:
        opshift.verify(original, converted, samples=1, tolerance=tolerance, runtime="onnxruntime")
    except opshift.VerificationFailed as error:
        return "does not run" if "does not run" in error.reason else "different"
    except opshift.CannotVerify:
        return "not compared"
    return "same"


def widened(path: Path) -> str:
    """Return the outcome of a conversion from bfloat16 to float, of which every number has to be exact."""
    model = opshift.convert_version(onnx.load(path), BFLOAT16_OPSET)
    narrow = in_bfloat16(model)
    try:
        onnx.checker.check_model(narrow, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return "not in bfloat16"
    try:
        wide = opshift.convert_types(narrow, "bfloat16=float")
    except opshift.ConversionRefused:
        return "not converted"
    rounded = {name: each for name, each in tensors(narrow) if each.data_type == TensorProto.BFLOAT16}
    for name, tensor in tensors(model):
        if name in rounded:
            value = numpy_helper.to_array(rounded[name]).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
    return outcome(model, wide, 0.0)


def in_bfloat16(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy with bfloat16 in place of float, except for scales and regions, which stay float."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graphs = list(graphs_of(result))
    nodes = [node for graph in graphs for node in graph.node]
    kept = {name for node in nodes if node.op_type == "Resize" for name in node.input[1:3]}
    for name, tensor in tensors(result):
        if tensor.data_type == TensorProto.FLOAT and name not in kept:
            value = numpy_helper.to_array(tensor).astype(ml_dtypes.bfloat16)
            tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
    for graph in graphs:
        for value_info in (*graph.input, *graph.output, *graph.value_info):
            if value_info.type.tensor_type.elem_type == TensorProto.FLOAT and value_info.name not in kept:
                value_info.type.tensor_type.elem_type = TensorProto.BFLOAT16
    for attribute in (each for node in nodes for each in node.attribute):
        if attribute.name in ("to", "dtype", "output_dtype") and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.BFLOAT16
    return result


def graphs_of(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the graph of a model and all subgraphs."""
    graphs = [model.graph]
    while graphs:
        graph = graphs.pop()
        yield graph
        attributes = [each for node in graph.node for each in node.attribute]
        graphs += [each.g for each in attributes if each.type == onnx.AttributeProto.GRAPH]


def tensors(model: onnx.ModelProto) -> Iterator[tuple[str, TensorProto]]:
    """Yield the weights and constants of a model by the name of their value, also those of subgraphs."""
    for graph in graphs_of(model):
        yield from ((each.name, each) for each in graph.initializer)
        for node in graph.node:
            yield from (
                (node.output[0], each.t)
                for each in node.attribute
                if each.type == onnx.AttributeProto.TENSOR and node.op_type in ("Constant", "ConstantOfShape")
            )


def table(title: str, models: list[Path], python: str | None) -> Table:
    """Return the number of models of each conversion by outcome."""
    ways: dict[str, Callable[[Path], str]] = {
        f"float to float16, {OURS}": lambda path: outcome(path, half(path), TOLERANCE)
    }
    if python is not None:
        other = python
        ways[f"float to float16, {THEIRS}"] = lambda path: outcome(path, half_by(other, path), TOLERANCE)
    ways[f"bfloat16 to float, {OURS}"] = widened
    counts: dict[str, Counter[str]] = {way: Counter() for way in ways}
    for path in models:
        for way, run in ways.items():
            found = run(path)
            counts[way][found] += 1
            print(f"{way}: {found}: {path.stem}", flush=True)
    kinds = sorted(
        {kind for each in counts.values() for kind in each}, key=lambda kind: (kind != "same", kind)
    )
    return Table(
        f"{len(models)} {title}",
        ("conversion", *kinds),
        [[way, *(str(found[kind]) for kind in kinds)] for way, found in counts.items()],
    )


def memory(gibibytes: int, folder: Path) -> Table:
    """Return the peak memory of processes that convert weights to float16."""
    rows: list[list[Cell]] = []
    for title, write in (("one file", write_heavy), ("a separate file of weights", write_external)):
        source, out = folder / "in.onnx", folder / "out.onnx"
        write(gibibytes, source)
        arguments = ["convert", str(source), str(out), "--types", "float=float16", "--allow", "approximate"]
        (cost,) = processes_in_turn([command(*arguments)], out, 1)
        rows.append(
            [f"{gibibytes} GiB in {title}", at_most(cost.peak, MOST_MEMORY, " MiB"), f"{cost.wall:.1f} s"]
        )
        for path in folder.iterdir():
            path.unlink()
    return Table("float to float16, peak memory", ("weights", "peak memory", "time"), rows)


def main() -> None:
    """Write the numbers of the outcomes, and print each of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--other", metavar="PYTHON")
    parser.add_argument("--weights", type=int, default=3, metavar="GIB")
    arguments = parser.parse_args()
    models = sorted(path for folder in arguments.folders for path in folder.rglob("*.onnx"))
    tables = [table("exports", models, arguments.other)]
    with tempfile.TemporaryDirectory() as folder:
        chosen = list(quantized(models[:QUANTIZED], Path(folder)))
        tables.append(table("quantized models", chosen, arguments.other))
    with tempfile.TemporaryDirectory() as folder:
        tables.append(memory(arguments.weights, Path(folder)))
    head = f"# Element types\n\nWritten by `python benchmarks/{Path(__file__).name} FOLDER...`.\n\n{facts()}"
    RESULTS.write_text("\n\n".join([head, *map(str, tables)]) + "\n")


if __name__ == "__main__":
    main()
