"""Elementwise operators."""

from __future__ import annotations

from typing import Any

from random_graphs.draft import Choice, Draft, TensorSpec, number_of
from random_graphs.tables.layout import broadcasting
from random_graphs.values import TYPES, is_float


def divisor(n: Draft) -> TensorSpec:
    """Choose a divisor; integers exclude 0 and -1, since dividing the smallest integer by -1 overflows."""
    return broadcasting(n)._replace(kind="nonzero" if is_float(n.types["T"]) else "positive")


def exponent(n: Draft) -> TensorSpec:
    """Choose a nonnegative exponent, since integers have no negative powers."""
    return broadcasting(n)._replace(kind="unit" if n.chance(50) else "positive")


def bound(n: Draft, low: bool) -> Any:
    """Choose a bound: a float attribute, or since opset 11 a scalar of the data's type."""
    if n.chance(35):
        return None
    value = n.one_of(-1, 0) if low else n.one_of(1, 2)
    if n.since < 11:
        return float(value)
    element_type = n.types["T"]
    value = max(value, 0) if element_type.startswith("uint") else value
    return value / 2 if is_float(element_type) else value


def to(n: Draft) -> int:
    """Choose a target type of a cast."""
    names = [
        each.removeprefix("tensor(").removesuffix(")") for each in n.version.types_of(n.version.outputs[0])
    ]
    preferred = [each for each in names if each in ("float", "double", "int64", "int32", "bool", "float16")]
    element_type = n.one_of(
        n.graph.one_of(preferred), n.graph.one_of([each for each in names if each in TYPES])
    )
    return number_of(element_type)


def same_width(n: Draft) -> int:
    """Return a type with the same number of bits."""
    widths = {"float": "int32", "int32": "float", "int64": "double", "double": "int64", "uint8": "int8"}
    return number_of(widths.get(n.first.type, n.first.type))


def shift(n: Draft) -> TensorSpec:
    """Draw a number of bits to shift by, in a shape that broadcasts to the data."""
    return broadcasting(n)._replace(kind="positive")


def ratio(n: Draft) -> float | None:
    """Choose a ratio; before opset 12 omit the mask, which runtimes fill differently in inference mode."""
    if n.since < 12:
        n.facts["outputs"] = 1
    found: float | None = n.one_of(None, 0.0, 0.5)
    return found


def slope(n: Draft) -> TensorSpec:
    """Choose a slope that broadcasts to the data."""
    trailing = n.shape[n.number(0, n.rank) :]
    return TensorSpec(tuple(1 if n.chance(25) else size for size in trailing))


CHOICES: dict[str, Choice] = {
    "Div.B": divisor,
    "Mod.B": divisor,
    "Mod.fmod": lambda n: int(is_float(n.types["T"])) or n.one_of(None, 0, 1),
    "Pow.Y": exponent,
    "BitShift.Y": shift,
    "PRelu.slope": slope,
    "Clip.min": lambda n: bound(n, low=True),
    "Clip.max": lambda n: bound(n, low=False),
    "Cast.to": to,
    "BitCast.to": same_width,
    "CastLike.target_type": lambda n: TensorSpec((1,)),
    "Dropout.ratio": ratio,
    "Dropout.training_mode": lambda n: n.one_of(None, False),
    "ParametricSoftplus.alpha": lambda n: 0.5,
    "ParametricSoftplus.beta": lambda n: 0.5,
    "ScaledTanh.alpha": lambda n: 0.5,
    "ScaledTanh.beta": lambda n: 0.5,
    "Celu.alpha": lambda n: n.one_of(None, 0.5, 2.0),
    "RegexFullMatch.pattern": lambda n: n.one_of("a.*", "[a-z]+", ".*"),
    "StringSplit.delimiter": lambda n: n.one_of(None, ",", "b"),
    "StringSplit.maxsplit": lambda n: n.one_of(None, 1),
    "StringNormalizer.stopwords": lambda n: n.one_of(None, ["the"], ["a", "B"]),
    "StringNormalizer.locale": lambda n: "C",
    "StringNormalizer.X": lambda n: TensorSpec((n.number(1, 4),)),
}
RANKS: dict[str, tuple[int, int]] = {}
