"""Compiled patterns, which checkouts share, are those that the definitions have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from opshift.converter.recognition.load import operator_names, patterns_of, patterns_text
from opshift.converter.recognition.patterns import from_data, to_data
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.precompiled import compact_json
from opshift.registry.registry import default_registry

SLOW = ("Attention", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
"""Operators with patterns that take many seconds to derive."""

QUICK = ("Celu", "Gelu", "LayerNormalization", "Range", "Swish")


def operators() -> Iterator[Any]:
    for name in operator_names(default_registry()):
        if name not in SLOW:
            yield pytest.param(name, marks=[] if name in QUICK else [pytest.mark.full])


@pytest.mark.parametrize("name", [*operators()])
def test_compiled_patterns_equal_derived_ones(name: str) -> None:
    derived = patterns_of(name, DEFAULT_DOMAIN, default_registry())
    written = compact_json(to_data(derived))
    assert written == patterns_text(name)
    assert repr(from_data(json.loads(written))) == repr(derived)
