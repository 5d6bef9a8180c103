"""The data of all definitions: its schema, its content, and the commands that write it."""

from __future__ import annotations

import json

import jsonschema
import pytest
from typer.testing import CliRunner

import opshift
from opshift.catalogue.data_package import DATA, SCHEMA, data_files, data_schema, registry_data
from opshift.cli.main import app
from opshift.registry.registry import default_registry

REGISTRY = default_registry()


@pytest.fixture(scope="module")
def content() -> dict[str, str]:
    """Files of the package by path."""
    return data_files(REGISTRY, opshift.__version__)


def test_data_match_the_schema(content: dict[str, str]) -> None:
    """The schema is valid, and describes all keys."""
    schema = json.loads(content[SCHEMA])
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(content[DATA]))


@pytest.mark.some_cases(2)
@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("operators", "ai.onnx", "Softmax", 0, "since_version"), "1"),
        (("operators", "ai.onnx", "Softmax", 0, "inputs", 0, "option"), "many"),
        (("operators", "ai.onnx", "Softmax", 0, "history", "leaving"), {"how": "guessed"}),
        (("operators", "ai.onnx", "Softmax"), []),
        (("format",), "2.0"),
        (("unknown",), 1),
    ],
)
def test_schema_refuses_other_data(
    content: dict[str, str], keys: tuple[str | int, ...], value: object
) -> None:
    """A wrong value, a missing key and an unknown one are errors."""
    data = json.loads(content[DATA])
    data["operators"] = {"ai.onnx": {"Softmax": data["operators"]["ai.onnx"]["Softmax"]}}
    *path, last = keys
    part = data
    for key in path:
        part = part[key]
    part[last] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(data_schema()).validate(data)


def test_data_contain_every_version(content: dict[str, str]) -> None:
    """Each version of the registry has its definition and its changes."""
    operators = json.loads(content[DATA])["operators"]
    found = [each for names in operators.values() for versions in names.values() for each in versions]
    by_id = {each["operator"]: each for each in found}
    assert len(by_id) == len(found)
    assert by_id.keys() == {str(each.id) for each in REGISTRY.get_all_schemas_with_history()}
    for version in REGISTRY.get_all_schemas_with_history():
        data = by_id[str(version.id)]
        assert version.to_dict().items() <= data.items()
        assert data["history"]["since_version"] == version.since_version
    classes = {each["class"] for each in by_id["ai.onnx.Softmax:13"]["changes"]}
    assert classes >= {"re-encodes", "widening"}


def test_data_contain_releases_and_opsets() -> None:
    """Releases have opsets and IR versions, and domains their newest opset."""
    data = registry_data(REGISTRY, "1.2.3")
    assert data["opsets"] == {domain: REGISTRY.newest_opset(domain) for domain in REGISTRY.domains()}
    assert isinstance(data["releases"], dict)
    release = data["releases"]["onnx"]["1.12"]
    assert (release["ir_version"], release["opsets"]["ai.onnx"]) == (8, 17)


def test_command_prints_both_files(content: dict[str, str]) -> None:
    """`opshift data` writes the data, and with --schema the schema."""
    assert CliRunner().invoke(app, ["data"]).output == content[DATA]
    assert CliRunner().invoke(app, ["data", "--schema"]).output == content[SCHEMA]
