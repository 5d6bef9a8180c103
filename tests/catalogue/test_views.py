"""Facts on the pages of operator versions."""

from __future__ import annotations

import pytest

from opshift.catalogue.views import OperatorView
from opshift.registry.registry import default_registry

REGISTRY = default_registry()

INTEGERS = "int16 int32 int64 int8 uint16 uint32 uint64 uint8"


@pytest.mark.parametrize(
    ("name", "version", "variable", "new", "removed"),
    [
        ("Erf", 9, "T", "", ""),  # the first version
        ("Erf", 13, "T", "bfloat16", INTEGERS),
        ("Dropout", 10, "T1", "bool", "double float float16"),  # of the mask
        ("Dropout", 12, "T1", "", ""),  # of the new input `ratio`
        ("QuantizeLinear", 23, "T2", "", ""),  # of the scale, which had another variable
        ("QuantizeLinear", 23, "T3", "float4e2m1", ""),
        ("Pow", 12, "T1", INTEGERS, ""),  # a second variable, for the exponent
        ("Resize", 11, "T2", "", ""),  # of `roi`, which was inserted before `scales`
    ],
)
def test_types_are_compared_with_those_of_the_same_parameter(
    name: str, version: int, variable: str, new: str, removed: str
) -> None:
    operator = REGISTRY.operator(name)
    assert operator
    views = {each.version.since_version: each for each in OperatorView(operator, REGISTRY).versions}
    found = {each.name: each for each in views[version].types}[variable]
    assert " ".join(kind for kind, is_new in found.types if is_new) == new
    assert " ".join(found.removed) == removed
