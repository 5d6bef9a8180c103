"""Operators that treat every element alike."""

from __future__ import annotations

from typing import Any

from support.graphs.draft import Choice, Draft, Of, number_of
from support.graphs.tables.layout import broadcasting
from support.graphs.values import TYPES, is_float


def divisor(n: Draft) -> Of:
    """Integers are divided neither by zero nor by -1, which the least of them cannot be."""
    return broadcasting(n)._replace(kind="nonzero" if is_float(n.types["T"]) else "positive")


def exponent(n: Draft) -> Of:
    """Integers are not taken to negative powers."""
    return broadcasting(n)._replace(kind="unit" if n.chance(50) else "positive")


def bound(n: Draft, low: bool) -> Any:
    """An attribute of floats, or a scalar of the data's type."""
    if n.chance(35):
        return None
    value = n.one_of(-1, 0) if low else n.one_of(1, 2)
    if n.since < 11:
        return float(value)
    element = n.types["T"]
    value = max(value, 0) if element.startswith("uint") else value
    return value / 2 if is_float(element) else value


def to(n: Draft) -> int:
    """A type that values can be cast to."""
    names = [
        each.removeprefix("tensor(").removesuffix(")") for each in n.version.types_of(n.version.outputs[0])
    ]
    usual = [each for each in names if each in ("float", "double", "int64", "int32", "bool", "float16")]
    element = n.one_of(n.graph.one_of(usual), n.graph.one_of([each for each in names if each in TYPES]))
    return number_of(element)


def same_width(n: Draft) -> int:
    """A type of as many bits."""
    widths = {"float": "int32", "int32": "float", "int64": "double", "double": "int64", "uint8": "int8"}
    return number_of(widths.get(n.first.type, n.first.type))


def shift(n: Draft) -> Of:
    return broadcasting(n)._replace(kind="positive")


def ratio(n: Draft) -> float | None:
    """The mask of what is not dropped, before 12, is all zeros in one runtime and all ones in another."""
    if n.since < 12:
        n.facts["outputs"] = 1
    found: float | None = n.one_of(None, 0.0, 0.5)
    return found


def slope(n: Draft) -> Of:
    """One that stretches to the data."""
    kept = n.shape[n.number(0, n.rank) :]
    return Of(tuple(1 if n.chance(25) else size for size in kept))


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
    "CastLike.target_type": lambda n: Of((1,)),
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
    "StringNormalizer.X": lambda n: Of((n.number(1, 4),)),
}
RANKS: dict[str, tuple[int, int]] = {}
