"""Downgrades of exports from PyTorch by three converters: how many results run with the same outputs.

`python downgrades.py FOLDER` exports 50 networks by torch.export, unless the folder has them, converts each
by opshift, by ONNX's converter and by onnxscript's, and runs the results in onnxruntime on the same inputs.
Needs torch, transformers, onnxscript and onnxruntime; writes DOWNGRADES.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import onnx

import opshift
from jobs import OURS
from machine import facts
from measuring import HERE
from tables import Table

RESULTS = HERE / "DOWNGRADES.md"
PACKAGES = ("torch", "transformers", "onnxscript", "onnxruntime")
NEWEST = 18
"""Default opset of the exporter."""
SECONDS = 300
"""Time limit of one conversion."""
SAME = "same outputs"

ONNX_CODE = """
import sys, onnx
from onnx import version_converter
model = version_converter.convert_version(onnx.load(sys.argv[1]), int(sys.argv[3]))
onnx.save(model, sys.argv[2])
"""
ONNXSCRIPT_CODE = """
import sys, onnx, onnx_ir
from onnxscript import version_converter
model = onnx_ir.load(sys.argv[1])
version_converter.convert_version(model, int(sys.argv[3]), fallback=True)
onnx_ir.save(model, sys.argv[2])
"""
OPSHIFT_CODE = """
import sys, opshift
opshift.convert_file(sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""
CONVERTERS = {OURS: OPSHIFT_CODE, "ONNX": ONNX_CODE, "onnxscript": ONNXSCRIPT_CODE}
"""Converter to the script that converts the file of its first argument to the opset of its third."""


class Outcome(NamedTuple):
    """Outcome of a conversion, and its reason."""

    kind: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


def main() -> None:
    """Export, convert, compare, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--targets", default="17,13,11")
    parser.add_argument("--export", action="store_true", help="only export")
    arguments = parser.parse_args()
    if arguments.export:
        export(arguments.folder)
        return
    if not arguments.folder.exists():
        subprocess.run([sys.executable, __file__, str(arguments.folder), "--export"], check=True)
    models = sorted(arguments.folder.glob("*.onnx"))
    tables = [table(models, target) for target in map(int, arguments.targets.split(","))]
    packages = ", ".join(f"{each} {version(each)}" for each in PACKAGES)
    head = f"# Downgrades of exports\n\nWritten by `python benchmarks/downgrades.py FOLDER`.\n\n{facts()}"
    RESULTS.write_text("\n\n".join([f"{head}\n* Exporter: {packages}", *map(str, tables)]) + "\n")


def export(folder: Path) -> None:
    """Export each network by torch.export at the default opset, and print the errors of the others."""
    import torch

    from architectures import ARCHITECTURES, Architecture
    from layers import LAYERS
    from networks import NETWORKS, Network

    networks: dict[str, Architecture | Network] = {**ARCHITECTURES, **NETWORKS, **LAYERS}
    folder.mkdir(parents=True)
    for name, network in networks.items():
        torch.manual_seed(0)
        built = network.build().eval()
        for parameter in built.parameters():
            torch.nn.init.uniform_(parameter, -0.1, 0.1)  # else biases are 0 and scales are 1
        try:
            torch.onnx.export(
                built,
                network.inputs,
                str(folder / f"{name}.onnx"),
                input_names=list(network.dynamic) or None,
                dynamic_axes=network.dynamic or None,
                opset_version=NEWEST,
                dynamo=True,
                external_data=False,
            )
        except Exception as error:  # the exporter does not support all of them
            print(f"{name}: {error!s:.300}", file=sys.stderr)


def table(models: list[Path], target: int) -> Table:
    """Return the number of models by outcome and converter."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in CONVERTERS}
    for model, name, outcome in outcomes(models, target):
        counts[name][outcome.kind] += 1
        print(f"{target}, {name}: {model.stem}: {outcome}", flush=True)
    kinds = sorted({kind for each in counts.values() for kind in each}, key=lambda kind: (kind != SAME, kind))
    rows = [[name, *(str(found[kind]) for kind in kinds)] for name, found in counts.items()]
    return Table(f"{len(models)} exports to opset {target}", ("converter", *kinds), rows)


def outcomes(models: list[Path], target: int) -> Iterator[tuple[Path, str, Outcome]]:
    """Yield the outcome of each model and converter."""
    with tempfile.TemporaryDirectory() as folder:
        converted = Path(folder, "converted.onnx")
        for model in models:
            for name, code in CONVERTERS.items():
                converted.unlink(missing_ok=True)
                yield model, name, outcome_of(model, converted, code, target)


def outcome_of(model: Path, converted: Path, code: str, target: int) -> Outcome:
    """Convert a model in a separate process, which a converter in C++ may end, and compare the result."""
    command = [sys.executable, "-c", code, str(model), str(converted), str(target)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Outcome("no result", "timeout")
    if done.returncode:
        return Outcome(
            "no result", (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        )
    found = max(each.version for each in onnx.load(converted).opset_import if not each.domain)
    if found != target:
        return Outcome("unchanged", f"the result has opset {found}")
    return compared(model, converted)


def compared(model: Path, converted: Path) -> Outcome:
    """Run both models on the same inputs and compare the outputs."""
    try:
        opshift.verify(model, converted, samples=2, runtime="onnxruntime")
    except opshift.VerificationFailed as error:
        return Outcome("does not run" if "does not run" in error.reason else "different", error.reason)
    except opshift.CannotVerify as error:
        return Outcome("not compared", error.reason)
    return Outcome(SAME)


if __name__ == "__main__":
    main()
