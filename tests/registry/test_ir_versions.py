"""`ir_versions.yaml` agrees with the IR versions of ONNX; invalid files are refused."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import helper

from opshift.model.element_types import BY_NAME
from opshift.registry.errors import DefinitionError
from opshift.registry.ir_versions import IrVersions, ir_versions
from opshift.registry.registry import default_registry

KNOWN = ir_versions()
INITIAL_TYPES = frozenset(range(1, 16))


def test_lists_every_ir_version_of_onnx_from_3() -> None:
    assert list(KNOWN.versions) == list(range(3, onnx.IR_VERSION + 1))
    assert (KNOWN.oldest, KNOWN.newest) == (3, onnx.IR_VERSION)


@pytest.mark.parametrize("number", KNOWN.versions)
def test_a_version_names_the_first_release_with_it(number: int) -> None:
    releases = default_registry().releases.onnx
    assert KNOWN.versions[number].onnx == next(
        name for name, each in releases.items() if each.ir_version == number
    )
    rows = [row[0] for row in helper.VERSION_TABLE if row[1] == number]
    assert rows[0].startswith(KNOWN.versions[number].onnx)


@pytest.mark.parametrize("number", KNOWN.versions)
def test_the_date_of_a_version_matches_its_name_in_onnx(number: int) -> None:
    names = {value: name for name, value in onnx.Version.items()}
    date = KNOWN.versions[number].date
    if date:
        numbers = [int(part) for part in names[number].removeprefix("IR_VERSION_").split("_")]
        assert [int(part) for part in date.split("-")] == numbers
    else:
        assert number == KNOWN.newest


def test_every_newer_element_type_belongs_to_one_version() -> None:
    listed = [name for each in KNOWN.versions.values() for name in each.element_types]
    assert len(listed) == len(set(listed))
    assert {BY_NAME[name].number for name in listed} == {
        number for number in onnx.TensorProto.DataType.values() if number not in {0, *INITIAL_TYPES}
    }


def test_every_feature_belongs_to_one_version() -> None:
    named = [name for each in KNOWN.versions.values() for name in each.features]
    assert sorted(named) == sorted(KNOWN.features)
    assert KNOWN.meaning("training") == "training information"


INVALID = {
    "a key that is not a number": ("x: {onnx: '1.0'}", "x: invalid literal"),
    "an unknown key": ('"3": {onnx: "1.0", colour: red}', "colour"),
    "a version without a release": ('"3": {features: {}}', "onnx"),
}


@pytest.mark.parametrize(("content", "reason"), INVALID.values(), ids=INVALID)
def test_refuses_an_invalid_file_with_its_line(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "ir_versions.yaml"
    path.write_text(f"\n{content}\n", "utf-8")
    with pytest.raises(DefinitionError) as caught:
        IrVersions.load(path)
    assert reason in caught.value.reason
    assert str(caught.value.place) == f"{path}:2"


@pytest.mark.parametrize("content", ["- {onnx: '1.0'}", "{}", "3", ""])
def test_refuses_a_file_without_versions(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ir_versions.yaml"
    path.write_text(content, "utf-8")
    with pytest.raises(DefinitionError, match="is not a mapping of IR versions"):
        IrVersions.load(path)
