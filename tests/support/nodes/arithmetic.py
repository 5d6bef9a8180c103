"""Elementwise operators: who may be overwritten, and how shapes are made to fit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from support.nodes.row import IMAGE, POSITIVE, Row, X, floats, row

ARITHMETIC = ("Add", "Div", "Mul", "Sub")
VARIADIC = ("Max", "Mean", "Min", "Sum")
LOGIC = ("And", "Or", "Xor")
COMPARISONS = ("Equal", "Greater", "Less")
OF_ANY_NUMBER = ("Abs", "Ceil", "Elu", "Exp", "Floor", "HardSigmoid", "LeakyRelu", "Neg", "Relu", "Selu")
OF_POSITIVE_NUMBERS = ("Log", "Reciprocal", "Sqrt", "Sigmoid", "Tanh")


def rows() -> Iterator[Row]:
    yield from consumed_inputs()
    yield from broadcast()
    yield from stretched()


def consumed_inputs() -> Iterator[Row]:
    """Version 1 said which inputs may be overwritten."""
    for op in OF_ANY_NUMBER:
        yield row(op, 1, {"x": X}, {"consumed_inputs": [0]})
    for op in OF_POSITIVE_NUMBERS:
        yield row(op, 1, {"x": POSITIVE}, {"consumed_inputs": [0]})
    for op in ARITHMETIC + VARIADIC:
        yield row(op, 1, {"a": X, "b": POSITIVE}, {"consumed_inputs": [0, 0]})
    yield row("Clip", 1, {"x": X}, {"consumed_inputs": [0], "min": 0.0})
    yield row("Clip", 6, {"x": X}, {"min": -0.5})
    yield row("PRelu", 1, {"x": X, "s": floats([0.5])}, {"consumed_inputs": [0, 0]})


def broadcast() -> Iterator[Row]:
    """Before 7 the second operand lies along some dimensions of the first."""
    rows = floats([2, -1])
    along = {"broadcast": 1, "axis": 0}
    for op in ARITHMETIC:
        yield row(op, 6, {"a": X, "b": rows}, along)
    yield row("Pow", 1, {"a": POSITIVE, "b": rows}, along)
    for op in LOGIC:
        yield row(op, 1, {"a": X > 0, "b": rows > 0}, along, outputs={"y": 9})
    for op in COMPARISONS:
        kind = np.int32 if op == "Equal" else np.float32
        yield row(op, 1, {"a": X.astype(kind), "b": rows.astype(kind)}, along, outputs={"y": 9})
    yield row("PRelu", 6, {"x": IMAGE, "s": floats([0.5, 2])})
    yield row("Gemm", 6, {"a": X, "b": X.T.copy(), "c": rows}, {"broadcast": 1, "alpha": 0.5})
    yield row("Gemm", 1, {"a": X, "b": X.T.copy(), "c": rows}, {"broadcast": 1, "beta": 0.5})


def stretched() -> Iterator[Row]:
    """From 8 on the variadic operators stretch their inputs."""
    for op in VARIADIC:
        yield row(op, 8, {"a": X, "b": POSITIVE[:1], "c": floats(0.25)})
