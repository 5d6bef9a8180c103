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

ANY_OPSET = 1000
FORMULAS: dict[str, tuple[int, Callable[..., Any]]] = {
    "Abs": (5, unary(np.abs)),
    "Add": (6, binary(np.add)),
    "And": (6, binary(np.logical_and)),
    "AveragePool": (6, windows.average_pool),
    "BatchNormalization": (6, elementwise.batch_normalization),
    "Cast": (5, arranging.cast),
    "Ceil": (5, unary(np.ceil)),
    "Clip": (5, unary(elementwise.clip)),
    "Concat": (3, arranging.concat),
    "ConstantFill": (8, arranging.constant_fill),
    "Div": (6, binary(elementwise.divide)),
    "Dropout": (6, elementwise.dropout),
    "Elu": (5, unary(lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x))),
    "Equal": (6, binary(np.equal)),
    "Exp": (5, unary(np.exp)),
    "Floor": (5, unary(np.floor)),
    "GRU": (6, recurrent.layer(recurrent.gru)),
    "Gemm": (6, elementwise.gemm),
    "GivenTensorFill": (9, arranging.given_tensor_fill),
    "GlobalLpPool": (ANY_OPSET, windows.global_lp_pool),
    "Greater": (6, binary(np.greater)),
    "HardSigmoid": (5, unary(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1))),
    "InstanceNormalization": (5, elementwise.instance_normalization),
    "LSTM": (6, recurrent.layer(recurrent.lstm)),
    "LeakyRelu": (5, unary(lambda x, alpha: np.where(x < 0, alpha * x, x))),
    "Less": (6, binary(np.less)),
    "Log": (5, unary(np.log)),
    "LpPool": (1, windows.lp_pool),
    "Max": (5, variadic(lambda inputs: reduce(np.maximum, inputs))),
    "MaxRoiPool": (ANY_OPSET, windows.max_roi_pool),
    "Mean": (5, variadic(lambda inputs: sum(inputs) / len(inputs))),
    "Min": (5, variadic(lambda inputs: reduce(np.minimum, inputs))),
    "Mul": (6, binary(np.multiply)),
    "Multinomial": (ANY_OPSET, elementwise.multinomial),
    "Neg": (5, unary(np.negative)),
    "Or": (6, binary(np.logical_or)),
    "PRelu": (6, elementwise.prelu),
    "Pad": (1, arranging.pad),
    "Pow": (6, binary(np.power)),
    "RNN": (6, recurrent.layer(recurrent.rnn)),
    "Reciprocal": (5, unary(np.reciprocal)),
    "Relu": (5, unary(lambda x: np.maximum(x, 0))),
    "Scatter": (ANY_OPSET, arranging.scatter),
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
"""The last opset at which each formula holds, and the formula, which takes attributes by name."""


@cache
def formulas(opset: int) -> list[type[OpRun]]:
    """Return the operators that onnx.reference uses from here at an opset."""
    return [_operator(name, opset, formula) for name, (last, formula) in FORMULAS.items() if opset <= last]


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
