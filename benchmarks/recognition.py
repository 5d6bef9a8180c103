"""Operators that recognition finds in exports, against the modules of their networks.

`python recognition.py FOLDER` exports each architecture of `architectures.py` with random weights, converts
it with recognition, runs both models in onnxruntime, and prints a table. Needs torch, transformers and
onnxscript.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn

import opshift
from architectures import ARCHITECTURES, OPSETS, Architecture

TARGET = 23
"""Newest opset of which onnxruntime has kernels for all recognized operators."""

MODULES = {
    "LayerNormalization": ("LayerNorm",),
    "RMSNormalization": ("RMSNorm",),
    "GroupNormalization": ("GroupNorm",),
    "Gelu": ("GELU", "GELUActivation", "NewGELUActivation"),
    "Attention": ("SelfAttention", "CrossAttention", "Attention", "SdpaAttention"),
}
"""Operator to the ends of the names of modules that compute it."""


def main() -> None:
    """Print a row for each architecture and exporter."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, architecture in ARCHITECTURES.items():
        torch.manual_seed(0)
        network = randomized(architecture.build().eval())
        expected = counts_of(network)
        for exporter, opset in OPSETS.items():
            path = folder / f"{name}, {exporter} {opset}.onnx"
            try:
                export(network, architecture, path, exporter, opset)
            except Exception as error:  # no exporter supports all of them
                print(f"{path.stem}: {type(error).__name__}")
                continue
            print(row(path, architecture, expected))


def randomized(network: nn.Module) -> nn.Module:
    """Return a network whose scales are not 1 and whose biases are not 0, because folding removes these."""
    for name, parameter in network.named_parameters():
        if parameter.dim() == 1:
            low, high = (-0.5, 0.5) if name.endswith("bias") else (0.5, 1.5)
            nn.init.uniform_(parameter, low, high)
    return network


def counts_of(network: nn.Module) -> Counter[str]:
    """Count the modules that compute each operator; an attention that contains another one does not count."""
    found: Counter[str] = Counter()
    for module in network.modules():
        for operator, names in MODULES.items():
            inner = [each for each in module.modules() if each is not module]
            is_outer = any(type(each).__name__.endswith(names) for each in inner)
            if type(module).__name__.endswith(names) and not is_outer:
                found[operator] += 1
    return found


def export(network: nn.Module, architecture: Architecture, path: Path, exporter: str, opset: int) -> None:
    """Write a model, unless the file exists."""
    if not path.exists():
        torch.onnx.export(
            network,
            architecture.inputs,
            str(path),
            input_names=list(architecture.dynamic),
            dynamic_axes=architecture.dynamic,
            opset_version=opset,
            dynamo=exporter == "dynamo",
            external_data=False,
        )


def row(path: Path, architecture: Architecture, expected: Counter[str]) -> str:
    """Return the figures of one model."""
    model = onnx.load(path)
    shapes = {
        name: tuple(each.shape) for name, each in zip(architecture.dynamic, architecture.inputs, strict=True)
    }
    plain, plain_time = timed(model)
    cells = []
    for given in ({}, shapes):
        converted, spent = timed(model, recognize=True, allow="approximate", shapes=given)
        found = Counter(node.op_type for node in converted.graph.node)
        counts = ", ".join(
            f"{found[operator]} of {count} {operator}" for operator, count in sorted(expected.items())
        )
        error = difference(plain, converted, architecture)
        nodes = f"{len(plain.graph.node)} -> {len(converted.graph.node)} nodes"
        cells.append(f"{counts}; {nodes}; error {error:.0e}; {spent / plain_time:.2f} x the time")
    return f"{path.stem}: {cells[0]} | static: {cells[1]}"


def timed(model: onnx.ModelProto, **arguments: Any) -> tuple[onnx.ModelProto, float]:
    """Return the converted model, and the least of three CPU times."""
    result = opshift.convert_version(model, TARGET, fold=True, **arguments)
    times = []
    for _ in range(3):
        start = time.process_time()
        opshift.convert_version(model, TARGET, fold=True, **arguments)
        times.append(time.process_time() - start)
    return result, min(times)


def difference(before: onnx.ModelProto, after: onnx.ModelProto, architecture: Architecture) -> float:
    """Return the greatest difference of outputs, relative to the greatest output."""
    names = {each.name for each in before.graph.input}
    feeds = {
        name: each.numpy()
        for name, each in zip(architecture.dynamic, architecture.inputs, strict=True)
        if name in names
    }
    results = [
        onnxruntime.InferenceSession(each.SerializeToString(), providers=["CPUExecutionProvider"]).run(
            None, feeds
        )
        for each in (before, after)
    ]
    return max(float(np.abs(old - new).max() / np.abs(old).max()) for old, new in zip(*results, strict=True))


if __name__ == "__main__":
    main()
