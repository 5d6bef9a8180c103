"""Round trips: a node is expanded for an old opset, converted back, and recognized with equal attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.round_trips import REGISTRY, UNRECOGNIZED, cases_of, function_versions, round_trip

from opshift.registry.models import OperatorVersion


def versions() -> Iterator[Any]:
    """Yield the function versions that an expansion determines."""
    for version in function_versions():
        if version.name not in UNRECOGNIZED:
            marks = [] if version.name in ("Gelu", "Mish", "Swish", "Softsign") else [pytest.mark.full]
            yield pytest.param(version, id=str(version.id), marks=marks)


MINIMUM = {"Attention": 0.97}
"""Share of the cases that are recognized: a few nodes of Attention combine more attributes than a pattern."""


@pytest.mark.every_case
@pytest.mark.parametrize("version", list(versions()))
def test_expansion_is_recognized(version: OperatorVersion) -> None:
    results = [round_trip(case, version) for case in cases_of(version)[:40]]
    expressed = [each for each in results if each is not None]
    assert sum(expressed) >= MINIMUM.get(version.name, 1.0) * len(expressed)


def test_reasons_are_needed() -> None:
    functions = {each.name for each in REGISTRY.operators("ai.onnx") if each.is_recognizable}
    assert UNRECOGNIZED.keys() <= functions
    assert MINIMUM.keys() <= functions
