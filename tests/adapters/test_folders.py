"""Adapters are in the folders of ONNX's own definitions, with exceptions that have a reason."""

from __future__ import annotations

from pathlib import PurePath

import onnx.defs

from opshift.adapters.core.adapter_table import (
    StepKey,
    adapter_table,
)

EXCEPTIONS = {
    "math.activations": {"Shrink"},  # one file for all activations
    "math.broadcasting": {"And", "Or", "Xor", "Equal", "Greater", "Less"},  # the same change as in Add
    "math.linear_algebra": {"ConvInteger", "QLinearConv"},  # shares the exact integer arithmetic
    "nn.attention": {"FlexAttention"},  # next to the other attention operators
    "tensor.is_nan": {"Sign"},  # the same comparisons as IsNaN
    "tensor.trilu": {"EyeLike"},  # the same masks as Trilu
    # One change, negative axes, in operators of five folders.
    "tensor.negative_axes": {
        "ArgMax", "ArgMin", "Flatten", "Hardmax", "LogSoftmax", "ReduceL1", "ReduceL2", "ReduceLogSum",
        "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
        "ReduceSumSquare", "Softmax",
    },
}  # fmt: skip
"""Operators in modules of a folder that is not theirs in ONNX."""


def _module(key: StepKey) -> str:
    """Return the module of an adapter, such as `math.clip`."""
    return adapter_table()[key].__module__.removeprefix("opshift.adapters.ops.")


def _folder_in_onnx(key: StepKey) -> str:
    """Return the folder of an operator below `onnx/defs`; `legacy` if ONNX removed the operator."""
    if key.domain == "com.microsoft":
        return "com_microsoft"
    domain = "" if key.domain == "ai.onnx" else key.domain
    try:
        schema = onnx.defs.get_schema(key.op_type, max(key.source, key.target), domain)
    except onnx.defs.SchemaError:
        return "legacy"
    parts = PurePath(schema.file.replace("\\", "/")).parts
    return parts[parts.index("defs") + 1]


def _misplaced() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for key in adapter_table():
        module = _module(key)
        if module.partition(".")[0] != _folder_in_onnx(key):
            found.setdefault(module, set()).add(key.op_type)
    return found


def test_adapters_are_in_the_folder_of_their_operator() -> None:
    assert _misplaced() == EXCEPTIONS
