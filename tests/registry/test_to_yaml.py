"""Operators written as plain data and YAML are read back unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opshift.registry.descriptions import GROUPS, texts_of
from opshift.registry.loader import load_operator, operator_from_data
from opshift.registry.models import Operator
from opshift.registry.registry import default_registry
from opshift.registry.to_yaml import operator_to_dict, version_to_dict
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import dump_yaml

pytestmark = pytest.mark.every_case

OPERATORS = list(default_registry().operators())
NO_TYPE_SETS = TypeSets({})


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda each: f"{each.domain}.{each.name}")
def test_reads_back_an_operator_from_plain_data(operator: Operator) -> None:
    data = json.loads(json.dumps(operator_to_dict(operator)))
    read = operator_from_data(data, NO_TYPE_SETS)
    assert read == operator
    assert list(map(texts_of, read.versions)) == list(map(texts_of, operator.versions))


@pytest.mark.parametrize("name", ["Clip", "Resize", "Loop", "GridSample", "Upsample", "Attention"])
def test_reads_back_an_operator_from_a_file(tmp_path: Path, name: str) -> None:
    operator = default_registry().operator(name)
    assert operator is not None
    path = tmp_path / "ai.onnx" / f"{name}.yaml"
    path.parent.mkdir()
    path.write_text(dump_yaml(operator_to_dict(operator)), encoding="utf-8")
    assert load_operator(path, NO_TYPE_SETS) == operator


@pytest.mark.parametrize(
    "value",
    ["off", "013", "12:30", "1e-05", "1e5", ".inf", "null", "~", "", "true", "- a", "a: b", "é\n#"],
)
def test_a_string_stays_a_string(tmp_path: Path, value: str) -> None:
    from opshift.registry.yaml_files import load_yaml

    path = tmp_path / "a.yaml"
    path.write_text(dump_yaml({"value": value}), encoding="utf-8")
    assert load_yaml(path) == {"value": value}


@pytest.mark.parametrize("value", [1e-5, 1e22, float("inf"), float("-inf"), 0.1, 3.4028234663852886e38, -0.0])
def test_a_number_stays_a_number(tmp_path: Path, value: float) -> None:
    from opshift.registry.yaml_files import load_yaml

    path = tmp_path / "a.yaml"
    path.write_text(dump_yaml({"value": value}), encoding="utf-8")
    assert repr(load_yaml(path)["value"]) == repr(value)


def test_omits_keys_shared_by_the_whole_file() -> None:
    clip = default_registry().operator("Clip")
    assert clip is not None
    newest, exception = clip.versions[-1], clip.versions[-2]
    assert "bridge" not in version_to_dict(newest, operator=clip)
    assert version_to_dict(exception, operator=clip)["bridge"] is None  # differs from the whole file
    assert version_to_dict(newest)["bridge"] == clip.bridge


def test_omits_the_texts_of_the_previous_version() -> None:
    softmax = default_registry().operator("Softmax")
    assert softmax is not None
    first, second, third = softmax.versions
    assert version_to_dict(first)["descriptions"].keys() == {"operator", *GROUPS}
    assert version_to_dict(second, first)["descriptions"].keys() == {"attributes"}
    assert version_to_dict(third, second)["descriptions"].keys() == {"operator", "attributes"}
