"""Quantization per tensor, per axis, or per block."""

from __future__ import annotations

from typing import Any

from random_graphs.draft import Choice, Draft, TensorSpec, number_of
from random_graphs.values import dtype_of, is_float


def _sample_granularity(n: Draft) -> str:
    granularities = (
        ["tensor"]
        + ["axis"] * ("axis" in n.version.attributes)
        + ["block"] * ("block_size" in n.version.attributes)
    )
    found: str = n.fact("granularity", lambda: n.graph.one_of(granularities if n.rank else ["tensor"]))
    return found


def _sample_axis(n: Draft) -> int:
    found: int = n.fact("axis", lambda: n.number(-n.rank, n.rank - 1) if n.rank else 1)
    return found


def _scale_shape(n: Draft) -> Any:
    granularity = _sample_granularity(n)
    if granularity == "tensor":
        return n.fact("scalar", lambda: n.one_of((), (), (1,)))
    axis = _sample_axis(n) % n.rank
    if granularity == "axis":
        return (n.shape[axis],)
    return (*n.shape[:axis], -(-n.shape[axis] // _sample_block_size(n)), *n.shape[axis + 1 :])


def _sample_block_size(n: Draft) -> int:
    found: int = n.fact(
        "block", lambda: n.one_of(*(b for b in (1, 2, 3) if n.shape[_sample_axis(n)] % b == 0))
    )
    return found


def scale(n: Draft) -> TensorSpec:
    """Return the shape of positive scales, which depends on the granularity."""
    return TensorSpec(_scale_shape(n), "positive")


def zero_point(n: Draft) -> Any:
    """Choose a zero point of the quantized type, or omit it so that `output_dtype` determines the type."""
    if n.chance(40):
        n.facts["no zero point"] = True
        return None
    shape = _scale_shape(n)
    parameter = next(each for each in n.version.inputs if each.name.endswith("zero_point"))
    element_type = n.element_type(parameter)
    if is_float(element_type) or element_type == "int32":
        return dtype_of(element_type).type(0) * n.graph.random.integers(0, 1, shape).astype(
            dtype_of(element_type)
        )
    return TensorSpec(shape)


def output_dtype(n: Draft) -> Any:
    if n.version.name == "QuantizeLinear" and n.facts.get("no zero point"):
        return n.one_of(None, number_of("uint8"), number_of("int8"), number_of("int16"))
    return None


CHOICES: dict[str, Choice] = {
    "QuantizeLinear.y_scale": scale,
    "QuantizeLinear.y_zero_point": zero_point,
    "DequantizeLinear.x_scale": scale,
    "DequantizeLinear.x_zero_point": zero_point,
    "output_dtype": output_dtype,
    "QuantizeLinear.precision": lambda n: None,
} | {
    f"{operator}.{name}": choice
    for operator in ("QuantizeLinear", "DequantizeLinear")
    for name, choice in (
        ("axis", lambda n: _sample_axis(n) if _sample_granularity(n) != "tensor" else n.one_of(None, 0, 5)),
        (
            "block_size",
            lambda n: _sample_block_size(n) if _sample_granularity(n) == "block" else n.one_of(None, 0),
        ),
    )
}
RANKS: dict[str, tuple[int, int]] = {"QuantizeLinear": (0, 3), "DequantizeLinear": (0, 3)}
