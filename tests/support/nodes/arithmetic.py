"""Elementwise operators: consumed inputs and broadcasting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from support.nodes.row import IMAGE, POSITIVE, Row, X, floats, row

ARITHMETIC = ("Add", "Div", "Mul", "Sub")
VARIADIC = ("Max", "Mean", "Min", "Sum")
LOGIC = ("And", "Or", "Xor")
COMPARISONS = ("Equal", "Greater", "Less")
ANY_INPUT = ("Abs", "Ceil", "Elu", "Exp", "Floor", "HardSigmoid", "LeakyRelu", "Neg", "Relu", "Selu")
POSITIVE_INPUT = ("Log", "Reciprocal", "Sqrt", "Sigmoid", "Tanh")


def rows() -> Iterator[Row]:
    yield from consumed_inputs()
    yield from broadcast()
    yield from variadic_broadcast()


def consumed_inputs() -> Iterator[Row]:
    """Yield nodes of version 1 with `consumed_inputs`, the inputs that may be overwritten."""
    for op in ANY_INPUT:
        yield row(op, 1, {"x": X}, {"consumed_inputs": [0]})
    for op in POSITIVE_INPUT:
        yield row(op, 1, {"x": POSITIVE}, {"consumed_inputs": [0]})
    for op in ARITHMETIC + VARIADIC:
        yield row(op, 1, {"a": X, "b": POSITIVE}, {"consumed_inputs": [0, 0]})
    yield row("Clip", 1, {"x": X}, {"consumed_inputs": [0], "min": 0.0})
    yield row("ThresholdedRelu", 1, {"x": X}, {"alpha": 0.25})
    yield row("Clip", 6, {"x": X}, {"min": -0.5})
    yield row("PRelu", 1, {"x": X, "s": floats([0.5])}, {"consumed_inputs": [0, 0]})


def broadcast() -> Iterator[Row]:
    """Yield nodes before opset 7 with a second operand aligned to dimensions of the first."""
    rows = floats([2, -1])
    attributes = {"broadcast": 1, "axis": 0}
    for op in ARITHMETIC:
        yield row(op, 6, {"a": X, "b": rows}, attributes)
    yield row("Pow", 1, {"a": POSITIVE, "b": rows}, attributes)
    for op in LOGIC:
        yield row(op, 1, {"a": X > 0, "b": rows > 0}, attributes, outputs={"y": 9})
    for op in COMPARISONS:
        dtype = np.int32 if op == "Equal" else np.float32
        yield row(op, 1, {"a": X.astype(dtype), "b": rows.astype(dtype)}, attributes, outputs={"y": 9})
    yield row("PRelu", 6, {"x": IMAGE, "s": floats([0.5, 2])})
    yield row("Gemm", 6, {"a": X, "b": X.T.copy(), "c": rows}, {"broadcast": 1, "alpha": 0.5})
    yield row("Gemm", 1, {"a": X, "b": X.T.copy(), "c": rows}, {"broadcast": 1, "beta": 0.5})


def variadic_broadcast() -> Iterator[Row]:
    """Yield variadic nodes since opset 8, which broadcast their inputs."""
    for op in VARIADIC:
        yield row(op, 8, {"a": X, "b": POSITIVE[:1], "c": floats(0.25)})
