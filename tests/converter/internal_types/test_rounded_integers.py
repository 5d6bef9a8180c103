"""Floats are rounded to integers of 4 and 2 bits as ONNX's pages about these types state."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto
from support.execution import run, run_reference

from opshift import default_registry
from opshift.converter.internal_types.narrow_results import NUMERIC_SOURCES, Widening
from opshift.converter.internal_types.widen_types import widen_types

WIDER = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}

VALUES = {
    "int4": {0.5: 0, 0.75: 1, 1.5: 2, 2.5: 2, -0.5: 0, -1.5: -2, -2.5: -2, 7.0: 7, 10.0: -6},
    "uint4": {0.5: 0, 0.75: 1, 1.5: 2, 2.5: 2, 7.0: 7, 20.0: 4},
    "int2": {0.5: 0, 0.75: 1, -0.5: 0, -1.5: -2, 3.0: -1},
    "uint2": {0.5: 0, 0.75: 1, 1.5: 2, 2.5: 2, 7.0: 3},
}
"""Floats that all types below have, and the integers that they become."""


@pytest.mark.parametrize("source", ["float", "double", "float16", "bfloat16", "float8e5m2"])
@pytest.mark.parametrize("target", WIDER)
@pytest.mark.parametrize("cast", ["Cast<to = TARGET>(s)", "CastLike(s, z)"])
def test_rounds_ties_to_even_and_drops_high_bits(cast: str, target: str, source: str) -> None:
    number = {each: getattr(TensorProto, each.upper()) for each in (source, target)}
    model = onnx.parser.parse_model(f"""
        <ir_version: 13, opset_import: ["" : 25]>
        g (float[N] x, int32[1] i) => (float[N] y) {{
            s = Cast<to = {number[source]}>(x) z = Cast<to = {number[target]}>(i)
            n = {cast.replace("TARGET", str(number[target]))} y = Cast<to = 1>(n)
        }}
    """)
    widening = Widening({target: WIDER[target]}, NUMERIC_SOURCES, "no remedy")
    widened, reasons = widen_types(model, default_registry(), widening)
    assert widened is not None
    assert not reasons
    onnx.checker.check_model(widened, full_check=True)
    feeds = {"x": np.array([*VALUES[target]], np.float32), "i": np.array([1], np.int32)}
    for run_widened in (run, run_reference):
        assert run_widened(widened, feeds)[0].tolist() == [*VALUES[target].values()]
