"""Operators in numpy, by ONNX's definitions: those that no runtime here has, or not in the old version.

A runtime that ignores an attribute which an old version had, or takes the default of a later version,
shows nothing; so whatever opset 6 and those before it compute by rules of their own is here.
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

ALWAYS = 1000
FORMULAS: dict[str, tuple[int, Callable[..., Any]]] = {
    "Abs": (5, unary(np.abs)),
    "Add": (6, binary(np.add)),
    "And": (6, binary(np.logical_and)),
    "AveragePool": (6, windows.average),
    "BatchNormalization": (6, elementwise.batch_normalization),
    "Cast": (5, arranging.cast),
    "Ceil": (5, unary(np.ceil)),
    "Clip": (5, unary(elementwise.clip)),
    "Concat": (3, arranging.concat),
    "ConstantFill": (8, arranging.constant_fill),
    "Div": (6, binary(elementwise.quotient)),
    "Dropout": (6, elementwise.dropout),
    "Elu": (5, unary(lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x))),
    "Equal": (6, binary(np.equal)),
    "Exp": (5, unary(np.exp)),
    "Floor": (5, unary(np.floor)),
    "GRU": (6, recurrent.layer(recurrent.gru)),
    "Gemm": (6, elementwise.gemm),
    "GivenTensorFill": (9, arranging.given_tensor_fill),
    "GlobalLpPool": (ALWAYS, windows.global_norm),
    "Greater": (6, binary(np.greater)),
    "HardSigmoid": (5, unary(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1))),
    "InstanceNormalization": (5, elementwise.instance_normalization),
    "LSTM": (6, recurrent.layer(recurrent.lstm)),
    "LeakyRelu": (5, unary(lambda x, alpha: np.where(x < 0, alpha * x, x))),
    "Less": (6, binary(np.less)),
    "Log": (5, unary(np.log)),
    "LpPool": (1, windows.norm),
    "Max": (5, variadic(lambda inputs: reduce(np.maximum, inputs))),
    "MaxRoiPool": (ALWAYS, windows.regions),
    "Mean": (5, variadic(lambda inputs: sum(inputs) / len(inputs))),
    "Min": (5, variadic(lambda inputs: reduce(np.minimum, inputs))),
    "Mul": (6, binary(np.multiply)),
    "Multinomial": (ALWAYS, elementwise.multinomial),
    "Neg": (5, unary(np.negative)),
    "Or": (6, binary(np.logical_or)),
    "PRelu": (6, elementwise.prelu),
    "Pad": (1, arranging.pad),
    "Pow": (6, binary(np.power)),
    "RNN": (6, recurrent.layer(recurrent.rnn)),
    "Reciprocal": (5, unary(np.reciprocal)),
    "Relu": (5, unary(lambda x: np.maximum(x, 0))),
    "Scatter": (ALWAYS, arranging.scatter),
    "Selu": (5, unary(lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(x)))),
    "Sigmoid": (5, unary(elementwise.sigmoid)),
    "Split": (1, arranging.split),
    "Sqrt": (5, unary(np.sqrt)),
    "Sub": (6, binary(np.subtract)),
    "Sum": (5, variadic(sum)),
    "Tanh": (5, unary(np.tanh)),
    "Tile": (5, arranging.tile),
    "Upsample": (6, arranging.upsample),
    "Xor": (6, binary(np.logical_xor)),
}
"""By operator, the last opset at which the formula holds, and the formula with the attributes by name."""


@cache
def formulas(opset: int) -> list[type[OpRun]]:
    """The operators of an opset that onnx.reference is to take from here."""
    return [_operator(name, opset, formula) for name, (last, formula) in FORMULAS.items() if opset <= last]


def _operator(name: str, opset: int, formula: Callable[..., Any]) -> type[OpRun]:
    def run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        found = formula(*inputs, **attributes)
        return found if isinstance(found, tuple) else (found,)

    return type(name, (OpRun,), {"op_domain": "", "op_schema": _schema(name, opset), "_run": run})


def _schema(name: str, opset: int) -> onnx.defs.OpSchema | None:
    """What gives attributes their defaults; ONNX no longer tells of the operators that it removed."""
    try:
        return onnx.defs.get_schema(name, opset)
    except onnx.defs.SchemaError:
        return None
