"""Quantizing, with a scale for the tensor, for each place of an axis, or for blocks of it."""

from __future__ import annotations

from typing import Any

from support.graphs.draft import Choice, Draft, Of, number_of
from support.graphs.values import dtype_of, is_float


def _granularity(n: Draft) -> str:
    ways = (
        ["tensor"]
        + ["axis"] * ("axis" in n.version.attributes)
        + ["block"] * ("block_size" in n.version.attributes)
    )
    found: str = n.fact("granularity", lambda: n.graph.one_of(ways if n.rank else ["tensor"]))
    return found


def _axis(n: Draft) -> int:
    found: int = n.fact("axis", lambda: n.number(-n.rank, n.rank - 1) if n.rank else 1)
    return found


def _scale_shape(n: Draft) -> Any:
    way = _granularity(n)
    if way == "tensor":
        return n.fact("scalar", lambda: n.one_of((), (), (1,)))
    place = _axis(n) % n.rank
    if way == "axis":
        return (n.shape[place],)
    return (*n.shape[:place], -(-n.shape[place] // _block(n)), *n.shape[place + 1 :])


def _block(n: Draft) -> int:
    found: int = n.fact("block", lambda: n.one_of(*(b for b in (1, 2, 3) if n.shape[_axis(n)] % b == 0)))
    return found


def scale(n: Draft) -> Of:
    return Of(_scale_shape(n), "positive")


def zero_point(n: Draft) -> Any:
    """Of the type to which values are quantized, which `output_dtype` names where it is left out."""
    if n.chance(40):
        n.facts["no zero point"] = True
        return None
    shape = _scale_shape(n)
    parameter = next(each for each in n.version.inputs if each.name.endswith("zero_point"))
    element = n.element(parameter)
    if is_float(element) or element == "int32":
        return dtype_of(element).type(0) * n.graph.random.integers(0, 1, shape).astype(dtype_of(element))
    return Of(shape)


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
        ("axis", lambda n: _axis(n) if _granularity(n) != "tensor" else n.one_of(None, 0, 5)),
        ("block_size", lambda n: _block(n) if _granularity(n) == "block" else n.one_of(None, 0)),
    )
}
RANKS: dict[str, tuple[int, int]] = {"QuantizeLinear": (0, 3), "DequantizeLinear": (0, 3)}
