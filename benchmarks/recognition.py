"""Operators that recognition finds in exports, against the calls of their networks and other tools.

`python recognition.py FOLDER [NAME...]` exports each or some architectures of `architectures.py` with random
weights, and prints tables: the operators that opshift, the optimizer of onnxruntime for transformers,
onnxslim and the rewriter of onnxscript find, the number of nodes, the difference of the outputs, and the
time. Needs torch, transformers, torchvision, onnxscript, onnxslim and onnxruntime.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_ir
import onnxruntime
import onnxslim
import torch
from onnxruntime.transformers import optimizer
from onnxscript.optimizer import optimize
from onnxscript.rewriter.ort_fusions import optimize_for_ort
from torch import nn

import opshift
from architectures import ARCHITECTURES, OPSETS, Architecture

TARGET = 24
"""Opset of the results, the oldest one with all recognized operators."""

FUNCTIONS = {
    "layer_norm": "LayerNormalization",
    "group_norm": "GroupNormalization",
    "gelu": "Gelu",
    "silu": "Swish",
    "scaled_dot_product_attention": "Attention",
}
"""Functions of torch.nn.functional, with the operators that compute them."""

MODULES = {
    "RMSNorm": "RMSNormalization",
    "NewGELUActivation": "Gelu",
    "ShiftedWindowAttention": "Attention",
    "MultiheadAttention": "Attention",
}
"""Ends of the names of modules that compute an operator without such a function."""

OPERATORS = {
    "LayerNormalization": ("LayerNormalization", "SkipLayerNormalization", "EmbedLayerNormalization"),
    "RMSNormalization": (
        "RMSNormalization", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization",
    ),
    "GroupNormalization": ("GroupNormalization", "GroupNorm", "SkipGroupNorm"),
    "Gelu": ("Gelu", "BiasGelu", "FastGelu"),
    "Swish": ("Swish", "QuickGelu"),
    "Attention": ("Attention", "MultiHeadAttention", "GroupQueryAttention", "PackedMultiHeadAttention"),
}  # fmt: skip
"""Operators, with those that count as them in the result of a tool."""

MODEL_TYPES = {
    "gpt2": "gpt2",
    "swin": "swin",
    "vit": "vit",
    "unet": "unet",
    "tv-vit": "vit",
    "tv-swin": "swin",
}
"""Architecture to the `model_type` of onnxruntime's optimizer; `bert` for all other architectures."""


class Row(NamedTuple):
    """Result of one tool for one model; `difference` is relative to the greatest output."""

    model: str
    exporter: str
    tool: str
    found: Counter[str]
    nodes: int
    difference: float
    seconds: float


def main() -> None:
    """Print the tables."""
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.WARNING)
    rows: list[Row] = []
    for name, architecture in ARCHITECTURES.items():
        if names and name not in names:
            continue
        for exporter, opset in OPSETS.items():
            path = folder / f"{name}, {exporter} {opset}.onnx"
            try:
                expected = exported(architecture, path, exporter, opset)
            except Exception as error:  # no exporter supports all of them
                print(f"{path.stem}: {type(error).__name__}", file=sys.stderr)
                continue
            new = list(measured(name, architecture, exporter, path, expected))
            rows += new
            print(*map(row_text, new), sep="\n", file=sys.stderr, flush=True)
    print_tables(rows)


def exported(architecture: Architecture, path: Path, exporter: str, opset: int) -> Counter[str]:
    """Write a model, unless the file exists, and count the calls that compute each operator."""
    torch.manual_seed(0)
    calls: Counter[str] = Counter()
    with counting(calls):
        network = randomized(architecture.build().eval())
        for module in network.modules():
            for suffix, operator in MODULES.items():
                if type(module).__name__.endswith(suffix):
                    module.register_forward_hook(lambda *_, operator=operator: calls.update([operator]))
        with torch.no_grad():
            network(*architecture.inputs)
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
    return Counter(calls)


@contextlib.contextmanager
def counting(calls: Counter[str]) -> Iterator[None]:
    """Count the calls of functions; networks that are built inside keep the counting functions."""
    is_active = [True]

    def counted(function: Callable[..., Any], operator: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if is_active[0]:
                calls[operator] += 1
            return function(*arguments, **named)

        return call

    functional: Any = nn.functional
    original = {name: getattr(functional, name) for name in FUNCTIONS}
    for name, operator in FUNCTIONS.items():
        setattr(functional, name, counted(original[name], operator))
    try:
        yield
    finally:
        is_active[0] = False
        for name, function in original.items():
            setattr(functional, name, function)


def randomized(network: nn.Module) -> nn.Module:
    """Return a network whose scales are not 1 and whose biases are not 0, because folding removes these."""
    for name, parameter in network.named_parameters():
        if parameter.dim() == 1:
            low, high = (-0.5, 0.5) if name.endswith("bias") else (0.5, 1.5)
            nn.init.uniform_(parameter, low, high)
    return network


def measured(
    name: str, architecture: Architecture, exporter: str, path: Path, expected: Counter[str]
) -> Iterator[Row]:
    """Yield the row of the network, of the plain conversion, and of each tool."""
    model = onnx.load(path)
    plain = opshift.convert_version(model, TARGET, fold=True)
    before = outputs(plain, architecture)
    yield Row(name, exporter, "network", expected, len(model.graph.node), 0, 0)
    tools: dict[str, Callable[[], onnx.ModelProto]] = {
        "plain conversion": lambda: opshift.convert_version(model, TARGET, fold=True),
        "opshift": lambda: opshift.convert_version(
            model, TARGET, fold=True, recognize=True, allow="approximate"
        ),
        "onnxruntime": lambda: (
            optimizer.optimize_model(model, MODEL_TYPES.get(name, "bert"), opt_level=0).model
        ),
        "onnxslim": lambda: onnxslim.slim(model),
        "onnxscript": lambda: rewritten(path),
    }
    for tool, run in tools.items():
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                result, seconds = timed(run, 7 if tool in ("plain conversion", "opshift") else 1)
            after = outputs(result, architecture)
        except Exception as error:  # tools do not support all models
            print(f"{path.stem}, {tool}: {error!s:.200}", file=sys.stderr)
            continue
        yield Row(
            name, exporter, tool, counts(result), len(result.graph.node), difference(before, after), seconds
        )


def rewritten(path: Path) -> onnx.ModelProto:
    """Return a model with the fusions of onnxscript."""
    model, _ = optimize_for_ort(optimize(onnx_ir.load(path)))
    result: onnx.ModelProto = onnx_ir.to_proto(model)
    return result


def counts(model: onnx.ModelProto) -> Counter[str]:
    """Count the nodes of each operator."""
    types = Counter(node.op_type for node in model.graph.node)
    return Counter({operator: sum(types[each] for each in names) for operator, names in OPERATORS.items()})


def timed(run: Callable[[], onnx.ModelProto], repeats: int) -> tuple[onnx.ModelProto, float]:
    """Return the result, and the least CPU time."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = run()
        times.append(time.process_time() - start)
    return result, min(times)


def outputs(model: onnx.ModelProto, architecture: Architecture) -> list[Any]:
    """Run a model in onnxruntime with the example inputs."""
    names = {each.name for each in model.graph.input}
    pairs = zip(architecture.dynamic, architecture.inputs, strict=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    results: list[Any] = session.run(None, {name: each.numpy() for name, each in pairs if name in names})
    return results


def difference(before: list[Any], after: list[Any]) -> float:
    """Return the greatest difference of outputs, relative to the greatest output."""
    pairs = zip(before, after, strict=True)
    return max(float(np.abs(old - new).max() / np.abs(old).max()) for old, new in pairs)


def row_text(row: Row) -> str:
    """Return a row as a line of text."""
    found = ", ".join(f"{count} {name}" for name, count in row.found.items() if count)
    figures = f"{row.nodes} nodes; difference {row.difference:.0e}; {row.seconds * 1e3:.0f} ms"
    return f"{row.model}, {row.exporter}, {row.tool}: {found or 'nothing'}; {figures}"


def print_tables(rows: list[Row]) -> None:
    """Print the sums over all models that each tool supports, and each model."""
    tools = ("opshift", "onnxruntime", "onnxslim", "onnxscript")
    by_model: defaultdict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        by_model[row.exporter, row.model][row.tool] = row
    print(f"| exporter | operator | network | {' | '.join(tools)} |\n|---|---|---|{'---|' * len(tools)}")
    for exporter in OPSETS:
        models = [each for (own, _), each in by_model.items() if own == exporter]
        for operator in OPERATORS:
            total = sum(each["network"].found[operator] for each in models)
            cells = [sum(each[tool].found[operator] for each in models if tool in each) for tool in tools]
            print(f"| {exporter} | {operator} | {total} | {' | '.join(map(str, cells))} |")
        shares = []
        for tool in tools:
            pairs = [(each[tool].nodes, each["network"].nodes) for each in models if tool in each]
            share = sum(after for after, _ in pairs) / max(sum(before for _, before in pairs), 1)
            shares.append(f"{share:.0%} in {len(pairs)}")
        print(f"| {exporter} | nodes after / before, models | 100% in {len(models)} | {' | '.join(shares)} |")
    print(
        "\n| model | exporter | found | nodes | with recognition | difference | time |\n" + "|---" * 7 + "|"
    )
    for (exporter, name), each in by_model.items():
        network, plain, own = each["network"], each["plain conversion"], each["opshift"]
        found = ", ".join(
            f"{own.found[key]} of {count} {key}" for key, count in sorted(network.found.items())
        )
        time_ratio = own.seconds / plain.seconds
        print(
            f"| {name} | {exporter} | {found} | {plain.nodes} | {own.nodes} | {own.difference:.0e} "
            f"| {time_ratio:.2f} |"
        )


if __name__ == "__main__":
    main()
