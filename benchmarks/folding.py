"""Nodes after a conversion that folds, and after onnxslim and a conversion: `python folding.py`.

`--onnxslim PYTHON` names an interpreter with onnxslim, if it is installed in another environment, and
`--models FOLDER` other models than the exports, such as those that `python architectures.py FOLDER` writes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException

import opshift
from exports import exports

TARGETS = (11, 18)
LIMIT = 1.1
"""Limit of the number of nodes, divided by that after onnxslim and a conversion."""
SIZES = (
    {"batch": 2, "length": 24, "past": 5, "height": 96, "width": 96},
    {"batch": 1, "length": 7, "past": 2, "height": 64, "width": 128},
)
"""Sizes of the dimensions that the exports name; others are 3."""
SLIM = """
import sys, onnx, onnxslim
for source, out in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        onnx.save(onnxslim.slim(onnx.load(source)), out)
    except Exception as error:
        print(source, error, file=sys.stderr)
"""


class Counts(NamedTuple):
    """Nodes of a converted model: without folding, folded, and after onnxslim; `None` if refused."""

    plain: int | None
    folded: int | None
    slim: int | None

    @property
    def ratio(self) -> float | None:
        """Nodes after folding, divided by those after onnxslim."""
        return self.folded / self.slim if self.folded and self.slim else None


def main() -> None:
    """Print the table, and exit with 1 if a ratio exceeds the limit or an output changes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--onnxslim", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--models", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    paths = sorted(arguments.models.glob("*.onnx")) if arguments.models else exports()
    failed = False
    print("| model | target | nodes | converted | folded | onnxslim | ratio |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        slim = simplify_with_onnxslim(paths, Path(folder), arguments.onnxslim)
        for path in paths:
            model = onnx.load(path)
            if problem := difference(model):
                print(f"{path.name}: {problem}", file=sys.stderr)
                failed = True
            for target in TARGETS:
                counts = count(model, slim.get(path), target)
                ratio = counts.ratio
                failed |= ratio is not None and ratio > LIMIT
                row = (path.stem, target, len(model.graph.node), *counts, f"{ratio:.2f}" if ratio else "")
                print(f"| {' | '.join(map(str, row))} |", flush=True)
    sys.exit(failed)


def simplify_with_onnxslim(paths: list[Path], folder: Path, python: str) -> dict[Path, onnx.ModelProto]:
    """Return the models that onnxslim writes; it crashes for some."""
    outs = [folder / f"{position}.onnx" for position in range(len(paths))]
    pairs = [str(each) for pair in zip(paths, outs, strict=True) for each in pair]
    subprocess.run([python, "-c", SLIM, *pairs], stdout=subprocess.DEVNULL, check=True)
    return {path: onnx.load(out) for path, out in zip(paths, outs, strict=True) if out.exists()}


def count(model: onnx.ModelProto, slim: onnx.ModelProto | None, target: int) -> Counts:
    """Return the numbers of nodes after conversions to a target."""
    return Counts(
        converted_nodes(model, target, fold=False),
        converted_nodes(model, target, fold=True),
        None if slim is None else converted_nodes(slim, target, fold=False),
    )


def converted_nodes(model: onnx.ModelProto, target: int, *, fold: bool) -> int | None:
    """Return the number of nodes of the main graph after a conversion; `None` if it is refused."""
    try:
        return len(opshift.convert_version(model, target, fold=fold).graph.node)
    except opshift.ConversionRefused:
        return None


def difference(model: onnx.ModelProto) -> str:
    """Return the output in which a simplified model differs from the original, if any, in onnxruntime."""
    sessions = [session(each) for each in (model, opshift.simplify(model))]
    for sizes in SIZES:
        feeds = {value.name: random_input(value, sizes) for value in model.graph.input}
        try:
            before = sessions[0].run(None, feeds)
        except (Fail, InvalidArgument, RuntimeException):  # exporters make some sizes constant
            continue
        after = sessions[1].run(None, feeds)
        for value, old, new in zip(model.graph.output, before, after, strict=True):
            if old.dtype != new.dtype or old.shape != new.shape or old.tobytes() != new.tobytes():
                return f"output {value.name} differs for {sizes}"
    return ""


def session(model: onnx.ModelProto) -> ort.InferenceSession:
    """Return a session without optimizations, which would round differently."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options)


def random_input(value: onnx.ValueInfoProto, sizes: dict[str, int]) -> np.ndarray:
    """Return an input with the given sizes."""
    kind = value.type.tensor_type
    dims = [
        dim.dim_value if dim.HasField("dim_value") else sizes.get(dim.dim_param, 3) for dim in kind.shape.dim
    ]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    random = np.random.default_rng(0)
    if np.issubdtype(dtype, np.floating):
        return random.normal(size=dims).astype(dtype)
    return random.integers(0, 2, dims).astype(dtype)


if __name__ == "__main__":
    main()
