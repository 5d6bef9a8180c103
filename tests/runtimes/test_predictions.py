"""Predictions about nodes agree with the installed onnxruntime, which loads and runs them."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest
from onnx import helper

from opshift.registry.runtimes.files import get_runtime
from opshift.runtimes.check_support import check_support

RUNTIME = f"onnxruntime-{onnxruntime.__version__}"

SESSION = onnxruntime.SessionOptions()
SESSION.log_severity_level = 4
SESSION.intra_op_num_threads = 1

IR_VERSIONS = {23: 11, 24: 12, 25: 13}
"""IR versions of opsets since 23."""


def runs(model: onnx.ModelProto) -> bool:
    """Return whether onnxruntime loads a model and runs it with zeros."""
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), SESSION, providers=["CPUExecutionProvider"]
        )
    except Exception:  # its classes have no common base
        return False
    feeds = {}
    for each in model.graph.input:
        kind = each.type.tensor_type
        if kind.elem_type == onnx.TensorProto.BFLOAT16:
            return True  # not readable from numpy
        shape = [dim.dim_value for dim in kind.shape.dim]
        feeds[each.name] = np.zeros(shape, helper.tensor_dtype_to_np_dtype(kind.elem_type))
    try:
        session.run(None, feeds)
    except Exception:
        return False
    return True


SCATTERED = "T[4] x, int64[1, 1] i, T[1] v"

RECURRENT = "T[1, 1, 1] x, T[1, GATES, 1] w, T[1, GATES, 1] r"

ATTENTION = "T[1, 1, 2, 2] x, U[2, 2] u"

FORMS = {
    "Softsign": ("y = Softsign (x)", "T[2] x", "T[2]"),
    "Elu": ("y = Elu (x)", "T[2] x", "T[2]"),
    "HardSwish": ("y = HardSwish (x)", "T[2] x", "T[2]"),
    "EyeLike": ("y = EyeLike <dtype = 10> (x)", "T[2, 2] x", "float16[2, 2]"),
    "CenterCropPad": ("y = CenterCropPad (x, n)", "float[4] x, T[1] n", "float[M]"),
    "log likelihood": (
        'y = NegativeLogLikelihoodLoss <reduction = "none"> (x, t)', "T[2, 3] x, int64[2] t", "T[2]"
    ),
    "cross entropy": (
        'y = SoftmaxCrossEntropyLoss <reduction = "none"> (x, t)', "T[2, 3] x, int64[2] t", "T[2]"
    ),
    "ReduceL2": ("y = ReduceL2 (x)", "T[2] x", "T[1]"),
    "ReduceLogSum": ("y = ReduceLogSum (x)", "T[2] x", "T[1]"),
    "Mod": ("y = Mod (x, k)", "T[2] x, T[2] k", "T[2]"),
    "Mod with fmod": ("y = Mod <fmod = 1> (x, k)", "T[2] x, T[2] k", "T[2]"),
    "ScatterND add": ('y = ScatterND <reduction = "add"> (x, i, v)', SCATTERED, "T[4]"),
    "ScatterND max": ('y = ScatterND <reduction = "max"> (x, i, v)', SCATTERED, "T[4]"),
    "ScatterElements mul": (
        'y = ScatterElements <reduction = "mul"> (x, i, v)', "T[4] x, int64[1] i, T[1] v", "T[4]"
    ),
    "ScatterElements max": (
        'y = ScatterElements <reduction = "max"> (x, i, v)', "T[4] x, int64[1] i, T[1] v", "T[4]"
    ),
    "LSTM": ("y = LSTM <hidden_size = 1> (x, w, r)", RECURRENT.replace("GATES", "4"), "T[1, 1, 1, 1]"),
    "GRU": ("y = GRU <hidden_size = 1> (x, w, r)", RECURRENT.replace("GATES", "3"), "T[1, 1, 1, 1]"),
    "joined": (
        "z = Constant <value_int = 0> () n = Cast <to = 2> (z) d = DequantizeLinear (x, s, n) "
        "c = Concat <axis = 0> (d, d) y = QuantizeLinear (c, s, n)",
        "uint8[1, 2] x, T s",
        "uint8[2, 2]",
    ),
    "joined and doubled": (
        "z = Constant <value_int = 0> () n = Cast <to = 2> (z) d = DequantizeLinear (x, s, n) "
        "b = Add (d, d) c = Concat <axis = 0> (d, b) y = QuantizeLinear (c, s, n)",
        "uint8[1, 2] x, T s",
        "uint8[2, 2]",
    ),
    "causal": ("y = Attention <is_causal = 1> (x, x, x, u)", ATTENTION, "T[1, 1, 2, 2]"),
    "key and value": ("y = Attention (x, x, v)", "T[1, 1, 2, 2] x, U[1, 1, 2, 2] v", "T[1, 1, 2, 2]"),
}  # fmt: skip
"""Nodes, with the declarations of their inputs and the type of the output, for the types T and U."""


@pytest.mark.parametrize(
    ("form", "opset", "types", "is_run"),
    [
        ("Softsign", 5, "float16", False),  # Cast 1 has no numbers of types
        ("Softsign", 6, "float16", True),
        ("EyeLike", 13, "int32", False),  # casts are inserted only for inputs
        ("Elu", 17, "double", False),  # the function body has opset 18
        ("Elu", 18, "double", True),
        ("Elu", 22, "double", False),
        ("HardSwish", 22, "double", False),
        ("CenterCropPad", 18, "int64", True),
        ("CenterCropPad", 18, "int32", False),
        ("log likelihood", 22, "float", True),
        ("log likelihood", 22, "bfloat16", False),
        ("cross entropy", 21, "float", True),
        ("cross entropy", 21, "bfloat16", False),
        ("ReduceL2", 18, "float", True),
        ("ReduceL2", 18, "uint32", False),
        ("ReduceLogSum", 18, "uint32", False),
        ("Mod with fmod", 13, "float", True),
        ("Mod", 13, "float", False),
        ("ScatterND add", 18, "float", True),
        ("ScatterND add", 18, "bool", True),
        ("ScatterND add", 18, "float16", False),
        ("ScatterND max", 18, "bool", False),
        ("ScatterElements mul", 18, "float16", False),
        ("ScatterElements max", 18, "float16", True),
        ("LSTM", 14, "float", True),
        ("LSTM", 14, "double", False),
        ("GRU", 14, "double", False),
        ("joined", 19, "float", True),
        ("joined", 19, "float16", False),  # QLinearConcat has no scales in float16
        ("joined and doubled", 19, "float16", True),
        ("causal", 23, "float float", True),
        ("causal", 23, "double bool", True),
        ("causal", 23, "float int32", False),
        ("causal", 23, "double double", False),
        ("key and value", 23, "float float16", False),
    ],
)
def test_predicts_whether_onnxruntime_runs_a_node(form: str, opset: int, types: str, *, is_run: bool) -> None:
    nodes, inputs, output = FORMS[form]
    text = f"""
        <ir_version: {IR_VERSIONS.get(opset, 10)}, opset_import: ["" : {opset}]>
        g ({inputs}) => ({output} y) {{ {nodes} }}
    """
    for letter, name in zip("TU", types.split(), strict=False):
        text = text.replace(f"{letter}[", f"{name}[").replace(f"{letter} s", f"{name} s")
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model, full_check=True)
    assert runs(model) == is_run
    assert (check_support(model.SerializeToString(), get_runtime(RUNTIME)) == ()) == is_run
