"""Numpy implementations of operator versions that no installed runtime supports, from ONNX's definitions.

A runtime that ignores an attribute of an old version, or uses the default of a later one, cannot verify a
conversion; therefore all operators with different rules up to opset 6 are implemented here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from typing import Any

import numpy as np
import onnx
from onnx.reference.op_run import OpRun

from support.formulas import arranging, elementwise, recurrent, windows
from support.formulas.elementwise import binary, unary, variadic

ALL = range(1, 1000)
FORMULAS: dict[str, tuple[range, Callable[..., Any]]] = {
    "Abs": (range(1, 6), unary(np.abs)),
    "Add": (range(1, 7), binary(np.add)),
    "And": (range(1, 7), binary(np.logical_and)),
    "AveragePool": (range(1, 7), windows.average_pool),
    "BatchNormalization": (range(1, 7), elementwise.batch_normalization),
    "Cast": (range(1, 6), arranging.cast),
    "Ceil": (range(1, 6), unary(np.ceil)),
    "Clip": (range(1, 6), unary(elementwise.clip)),
    "Concat": (range(1, 4), arranging.concat),
    "ConstantFill": (range(1, 9), arranging.constant_fill),
    "Div": (range(1, 7), binary(elementwise.divide)),
    "Dropout": (range(1, 7), elementwise.dropout),
    "Elu": (range(1, 6), unary(lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x))),
    "Equal": (range(1, 7), binary(np.equal)),
    "Exp": (range(1, 6), unary(np.exp)),
    "Floor": (range(1, 6), unary(np.floor)),
    "GRU": (range(1, 7), recurrent.layer(recurrent.gru)),
    "Gemm": (range(1, 7), elementwise.gemm),
    "GivenTensorFill": (range(1, 10), arranging.given_tensor_fill),
    "GlobalLpPool": (ALL, windows.global_lp_pool),
    "Greater": (range(1, 7), binary(np.greater)),
    "HardSigmoid": (range(1, 6), unary(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1))),
    "InstanceNormalization": (range(1, 6), elementwise.instance_normalization),
    "LSTM": (range(1, 7), recurrent.layer(recurrent.lstm)),
    "LeakyRelu": (range(1, 6), unary(lambda x, alpha: np.where(x < 0, alpha * x, x))),
    "Less": (range(1, 7), binary(np.less)),
    "Log": (range(1, 6), unary(np.log)),
    "LpPool": (range(1, 2), windows.lp_pool),
    "Max": (range(1, 6), variadic(lambda inputs: reduce(np.maximum, inputs))),
    "MaxRoiPool": (ALL, windows.max_roi_pool),
    "Mean": (range(1, 6), variadic(lambda inputs: sum(inputs) / len(inputs))),
    "Min": (range(1, 6), variadic(lambda inputs: reduce(np.minimum, inputs))),
    "Mul": (range(1, 7), binary(np.multiply)),
    "Multinomial": (ALL, elementwise.multinomial),
    "Neg": (range(1, 6), unary(np.negative)),
    "Or": (range(1, 7), binary(np.logical_or)),
    "PRelu": (range(1, 7), elementwise.prelu),
    "Pad": (range(1, 2), arranging.pad),
    "Pow": (range(1, 7), binary(np.power)),
    "RNN": (range(1, 7), recurrent.layer(recurrent.rnn)),
    "Reciprocal": (range(1, 6), unary(np.reciprocal)),
    "Relu": (range(1, 6), unary(lambda x: np.maximum(x, 0))),
    "Scatter": (ALL, arranging.scatter),
    "Selu": (range(1, 6), unary(lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(x)))),
    "Sigmoid": (range(1, 6), unary(elementwise.sigmoid)),
    "Split": (range(1, 2), arranging.split),
    "Sqrt": (range(1, 6), unary(np.sqrt)),
    "Sub": (range(1, 7), binary(np.subtract)),
    "Sum": (range(1, 6), variadic(sum)),
    "Tanh": (range(1, 6), unary(np.tanh)),
    "Tile": (range(1, 6), arranging.tile),
    "Upsample": (range(1, 7), arranging.upsample),
    "Xor": (range(1, 7), binary(np.logical_xor)),
}
"""The opsets at which each formula holds, and the formula, which takes attributes by name."""


@cache
def formulas(opset: int) -> list[type[OpRun]]:
    """Return the operators that onnx.reference uses from here at an opset."""
    return [
        _operator(name, opset, formula) for name, (opsets, formula) in FORMULAS.items() if opset in opsets
    ]


def _operator(name: str, opset: int, formula: Callable[..., Any]) -> type[OpRun]:
    def run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        if name == "Split":
            attributes["output_count"] = len(self.onnx_node.output)
        found = formula(*inputs, **attributes)
        return found if isinstance(found, tuple) else (found,)

    return type(name, (OpRun,), {"op_domain": "", "op_schema": _schema(name, opset), "_run": run})


def _schema(name: str, opset: int) -> onnx.defs.OpSchema | None:
    """Return the schema with the default attributes; ONNX has no schema of removed operators."""
    try:
        return onnx.defs.get_schema(name, opset)
    except onnx.defs.SchemaError:
        return None
