"""Models with hostile declared dimensions are converted or refused in little time and memory.

The test converts one case of ONNX for each operator; with OPSHIFT_ALL_CASES set, it converts all of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress

import onnx
import pytest
from support.deadline import deadline
from support.nodes import nodes
from support.published import published

from opshift import ConversionRefused, convert_version

TARGETS = (7, 12, 17)

SECONDS, MEBIBYTES = 6, 300
"""For all targets together. Without limits, the conversions take hours, or all memory."""

Choice = Callable[[int, int], bool]

CHOICES: dict[str, Choice] = {
    "all": lambda axis, rank: True,
    "first": lambda axis, rank: axis == 0,
    "last": lambda axis, rank: axis == rank - 1,
}
"""Dimensions to replace, by position and rank."""


def _cases() -> Iterator[tuple[str, onnx.ModelProto]]:
    chosen = random.Random(0)
    own: dict[tuple[str, str], list[onnx.ModelProto]] = {}
    for (domain, name, _), rows in nodes().items():
        own.setdefault(("" if domain == "ai.onnx" else domain, name), []).extend(
            row.case.model for row in rows
        )
    for domain, name in sorted({*own, *published()}):
        models = [*own.get((domain, name), ()), *(each.model for each in published().get((domain, name), ()))]
        if "OPSHIFT_ALL_CASES" not in os.environ:
            models = chosen.sample(models, min(len(models), 1))
        for number, model in enumerate(models):
            yield f"{name}-{number}", model


CASES = dict(_cases())


def _with_sizes(model: onnx.ModelProto, size: int, is_replaced: Choice) -> onnx.ModelProto:
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        dims = value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ()
        for axis, dim in enumerate(dims):
            if is_replaced(axis, len(dims)):
                dim.dim_value = size
    return result


@pytest.mark.parametrize("replaced", CHOICES)
@pytest.mark.parametrize("size", [10**9, pytest.param(2**31, marks=pytest.mark.full)])
@pytest.mark.parametrize("case", CASES)
def test_declared_sizes_cost_neither_time_nor_memory(case: str, size: int, replaced: str) -> None:
    model = _with_sizes(CASES[case], size, CHOICES[replaced])
    with deadline(SECONDS, MEBIBYTES):
        for target in TARGETS:
            with suppress(ConversionRefused):
                result = convert_version(model, target, allow=("approximate", "assume-nonnegative"))
                assert result.ByteSize() < model.ByteSize() + (16 << 20)
