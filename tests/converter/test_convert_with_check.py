"""Conversion with `check=True`: the input and the result must be legal."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from support.checker_cases.case import parse_text

import opshift
from opshift.checker.findings import IllegalModel
from opshift.converter.apply import apply_plan
from opshift.converter.cost import plan_with_cost
from opshift.converter.options import Options

CLIP = '<ir_version: 4, opset_import: ["": 9]> g (float[2] x) => (float[2] y) { y = Clip <min = 0.0> (x) }'


def test_converts_legal_model() -> None:
    model = parse_text(CLIP)
    assert opshift.convert_version(model, 13, check=True) == opshift.convert_version(model, 13)
    assert opshift.convert(model, 13, check=True).report.changed


def test_refuses_illegal_model_before_conversion() -> None:
    model = parse_text(CLIP)
    model.graph.name = ""
    opshift.convert_version(model, 13)
    with pytest.raises(IllegalModel, match=r"before the conversion: graph\.name"):
        opshift.convert_version(model, 13, check=True)


@pytest.mark.parametrize("inplace", [False, True], ids=["copy", "in place"])
def test_faulty_conversion_leaves_model_unchanged(inplace: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def apply_and_corrupt(plan: Any, model: Any) -> None:
        apply_plan(plan, model)
        model.graph.node[-1].output[0] = "z"

    monkeypatch.setattr("opshift.converter.apply.apply_plan", apply_and_corrupt)
    model = parse_text(CLIP)
    before = model.SerializeToString()
    with pytest.raises(IllegalModel, match=r"after the conversion: graph\.output-made"):
        opshift.convert_version(model, 13, check=True, inplace=inplace)
    assert model.SerializeToString() == before


def test_plan_with_cost_checks_model_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    stages: list[str] = []
    monkeypatch.setattr(
        "opshift.checker.check.require_legal", lambda model, registry, when: stages.append(when)
    )
    assert plan_with_cost(parse_text(CLIP), Options.of(13, check=True), 0).changed
    assert stages == ["before the conversion", "after the conversion"]
    assert plan_with_cost(parse_text(CLIP), Options.of(13), 0).changed
    assert len(stages) == 2


def test_plan_with_cost_refuses_illegal_model() -> None:
    model = parse_text(CLIP)
    model.graph.name = ""
    with pytest.raises(IllegalModel, match=r"before the conversion: graph\.name"):
        plan_with_cost(model, Options.of(13, check=True), 0)


def test_converts_in_place() -> None:
    model = parse_text(CLIP)
    assert opshift.convert_version(model, 13, check=True, inplace=True) is model
    assert [each.version for each in model.opset_import] == [13]


def test_returns_bytes_for_bytes() -> None:
    data = opshift.convert_version(parse_text(CLIP).SerializeToString(), 13, check=True)
    assert onnx.load_from_string(data).opset_import[0].version == 13
