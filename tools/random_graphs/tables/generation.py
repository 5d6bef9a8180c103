"""Operators that generate tensors, and spectra."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import numpy_helper

from random_graphs.draft import Choice, Draft, TensorSpec, number_of
from random_graphs.values import TYPES, random_data


def constant(n: Draft) -> Any:
    """Choose the attribute of a Constant; before opset 12 there are tensors only."""
    return n.fact(
        "constant",
        lambda: n.one_of("value", "value_int", "value_floats", "value_string") if n.since >= 12 else "value",
    )


def tensor(n: Draft) -> onnx.TensorProto | None:
    """Draw a tensor for the attribute `value` of a Constant; `None` if another attribute has the value."""
    if constant(n) != "value":
        return None
    legal = [each[7:-1] for each in n.version.types_of(n.version.outputs[0])]
    element_type = n.graph.one_of([each for each in legal if each in TYPES])
    shape = tuple(n.size(3) for _ in range(n.number(0, 3)))
    return numpy_helper.from_array(random_data(n.graph.random, element_type, shape, "any", n.graph.special))


def one_value(n: Draft) -> onnx.TensorProto | None:
    if n.chance(30):
        return None
    legal = [each[7:-1] for each in n.version.types_of(n.version.outputs[0])]
    element_type = n.graph.one_of([each for each in legal if each in TYPES and each != "string"])
    return numpy_helper.from_array(random_data(n.graph.random, element_type, (1,), "any", special=False))


def step(n: Draft) -> Any:
    """Draw the distance between frames."""
    return n.one_of(1, 2)


def only(name: str, value: Any) -> Choice:
    """Return a Choice that yields `value` if the drawn attribute of the Constant is `name`, else `None`."""
    return lambda n: value if constant(n) == name else None


def float_type(n: Draft) -> Any:
    return n.one_of(None, number_of("float"), number_of("double"), number_of("float16"))


def any_type(n: Draft) -> Any:
    return n.one_of(None, number_of("float"), number_of("double"), number_of("int64"), number_of("int32"))


def signal(n: Draft) -> TensorSpec:
    """Choose real or complex signals of four or five samples."""
    parts = n.fact(
        "parts", lambda: 1 if n.attribute("onesided") == 1 and not n.attribute("inverse") else n.one_of(1, 2)
    )
    return TensorSpec((n.number(1, 2), n.number(4, 5), *([3] if n.chance(30) else []), parts))


def dft_axis(n: Draft) -> Any:
    return n.fact("axis", lambda: n.one_of(1, n.rank - 2, -2 if n.since >= 20 else 1))


CHOICES: dict[str, Choice] = {
    "Constant.value": tensor,
    "Constant.value_int": only("value_int", 3),
    "Constant.value_ints": lambda n: None,
    "Constant.value_float": lambda n: None,
    "Constant.value_floats": only("value_floats", [0.5, 1.5]),
    "Constant.value_string": only("value_string", "text"),
    "Constant.value_strings": lambda n: None,
    "Constant.sparse_value": lambda n: None,
    "ConstantOfShape.value": one_value,
    "ConstantOfShape.input": lambda n: [n.size(3) for _ in range(n.number(0, 3))],
    "Range.start": lambda n: n.number(-1, 2),
    "Range.limit": lambda n: n.number(2, 7),
    "Range.delta": step,
    "RandomNormal.shape": lambda n: [2, 3],
    "RandomUniform.shape": lambda n: [2, 3],
    "dtype": float_type,
    "EyeLike.dtype": any_type,
    "seed": lambda n: None,
    "low": lambda n: n.one_of(None, -1.0),
    "high": lambda n: n.one_of(None, 2.0),
    "window.size": lambda n: n.number(1, 6),
    "output_datatype": lambda n: n.one_of(None, number_of("double"), number_of("float")),
    "MelWeightMatrix.num_mel_bins": lambda n: 4,
    "MelWeightMatrix.dft_length": lambda n: 16,
    "MelWeightMatrix.sample_rate": lambda n: 8192,
    "MelWeightMatrix.lower_edge_hertz": lambda n: 0.0,
    "MelWeightMatrix.upper_edge_hertz": lambda n: 4096.0,
    "DFT.input": signal,
    "DFT.axis": dft_axis,
    "DFT.dft_length": lambda n: n.one_of(None, 4, 6, 3),
    "DFT.onesided": lambda n: n.attribute("onesided"),
    "DFT.inverse": lambda n: n.attribute("inverse"),
    "STFT.signal": lambda n: TensorSpec((1, 8, 1)),
    "STFT.frame_step": lambda n: n.one_of(2, 3),
    "STFT.window": lambda n: n.fact("window", lambda: n.one_of(None, TensorSpec((4,)))),
    "STFT.frame_length": lambda n: 4 if n.facts["window"] is None else n.one_of(None, 4),
    "Bernoulli.input": lambda n: TensorSpec((2, 3), "unit"),
    "Multinomial.input": lambda n: TensorSpec((2, 3)),
    "Multinomial.sample_size": lambda n: n.one_of(None, 2),
    "Multinomial.dtype": lambda n: n.one_of(None, number_of("int64"), number_of("int32")),
}
RANKS: dict[str, tuple[int, int]] = {}
