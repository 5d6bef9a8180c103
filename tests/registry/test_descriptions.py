"""Texts apply to later versions too, are complete, and are loaded only when they are read."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from opshift.opsets import OPSETS
from opshift.registry.descriptions import texts_of
from opshift.registry.errors import DefinitionError, InvalidDefinition
from opshift.registry.loader import load_operator
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import TEXT_LOADER
from opshift.registry.registry import Registry
from opshift.registry.type_sets import TypeSets

ROOT = Path(__file__).parents[2]
HERE = "# <--"
"""Marks the line with the error."""
FIRST = """\
domain: com.acme
name: Blur
versions:
- since_version: 1
  inputs: [{name: X, type: T}]
  outputs: [{name: Y, type: T}]
  attributes: {size: {type: INT}}
  type_constraints: {T: [tensor(float)]}
"""
SECOND = """\
- since_version: 2
  step: {change: Size became an input., up: adapter, down: adapter}
  inputs: [{name: X, type: T}, {name: size, type: tensor(int64)}]
  outputs: [{name: Y, type: T}]
  type_constraints: {T: [tensor(float)]}
"""
TEXTS = """\
  descriptions:
    operator: It blurs.
    inputs: {X: A picture.}
    outputs: {Y: The blurred picture.}
    attributes: {size: A number of pixels.}
    types: {T: The type of a pixel.}
"""
LATER_TEXTS = """\
  descriptions:
    inputs: {size: "A number of pixels, from 1."}
    outputs: {Y: A picture.}
"""


def _load(folder: Path, content: str) -> Operator:
    path = folder / "com.acme" / "Blur.yaml"
    path.parent.mkdir()
    path.write_text(content, "utf-8")
    return load_operator(path, TypeSets({}))


def _named(version: OperatorVersion) -> dict[str, str]:
    return {f"{group}.{name}": text for (group, name), text in texts_of(version).items()}


def test_a_later_version_inherits_texts_that_it_does_not_replace(tmp_path: Path) -> None:
    first, second = _load(tmp_path, f"{FIRST}{TEXTS}{SECOND}{LATER_TEXTS}").versions
    assert _named(first) == {
        "operator.": "It blurs.",
        "inputs.X": "A picture.",
        "outputs.Y": "The blurred picture.",
        "attributes.size": "A number of pixels.",
        "types.T": "The type of a pixel.",
    }
    assert _named(second) == {
        "operator.": "It blurs.",
        "inputs.X": "A picture.",
        "inputs.size": "A number of pixels, from 1.",
        "outputs.Y": "A picture.",
        "types.T": "The type of a pixel.",
    }
    assert second.doc == second.description == "It blurs."
    assert second.inputs[1].description == "A number of pixels, from 1."
    assert first.attributes["size"].description == "A number of pixels."
    assert first.type_descriptions == {"T": "The type of a pixel."}


def test_an_operator_may_have_a_text_and_its_parameters_none(tmp_path: Path) -> None:
    (version,) = _load(tmp_path, f"{FIRST}  descriptions: {{operator: It blurs.}}\n").versions
    assert [text for text in texts_of(version).values() if text] == ["It blurs."]


def test_versions_before_the_first_texts_of_parameters_need_none(tmp_path: Path) -> None:
    texts = TEXTS.replace("attributes: {size", "inputs: {X: A picture., size").replace(
        "    inputs: {X: A picture.}\n", ""
    )
    first, second = _load(tmp_path, f"{FIRST}{SECOND}{texts}").versions
    assert not any(texts_of(first).values())
    assert all(texts_of(second).values())


def _marked(old: str, new: str) -> str:
    content = f"{FIRST}{TEXTS}{SECOND}{LATER_TEXTS}"
    assert old in content
    return content.replace(old, new)


INVALID = {
    "an input without a text": (
        _marked('    inputs: {size: "A number of pixels, from 1."}\n', "").replace(
            "  descriptions:\n    outputs", f"  descriptions: {HERE}\n    outputs"
        ),
        "versions.1.descriptions.inputs.size: missing",
    ),
    "a version without new texts": (
        FIRST + TEXTS + SECOND.replace("- since_version: 2", f"- since_version: 2  {HERE}"),
        "versions.1.descriptions.inputs.size: missing",
    ),
    "an operator without a text": (
        _marked("  descriptions:\n    operator: It blurs.", f"  descriptions: {HERE}"),
        "versions.0.descriptions.operator: missing",
    ),
    "a type variable without a text": (
        _marked("  descriptions:\n    operator", f"  descriptions: {HERE}\n    operator").replace(
            "    types: {T: The type of a pixel.}\n", ""
        ),
        "versions.0.descriptions.types.T: missing",
    ),
    "an unknown output": (
        _marked("    outputs: {Y: A picture.}", f"    outputs: {{Z: A picture.}} {HERE}"),
        "versions.1.descriptions.outputs.Z: unknown output; the version has Y",
    ),
    "an attribute that the version lacks": (
        f"{FIRST}{TEXTS}{SECOND}{LATER_TEXTS}    attributes: {{size: A number.}}  {HERE}\n",
        "versions.1.descriptions.attributes.size: unknown attribute",
    ),
    "an unknown group": (
        _marked("    types:", f"    type_constraints: {{}} {HERE}\n    types:"),
        "versions.0.descriptions.type_constraints: unknown key",
    ),
    "a number as text": (
        _marked("{X: A picture.}", f"{{X: 3}} {HERE}"),
        "versions.0.descriptions.inputs.X: expected a string, got 3",
    ),
    "a list of texts": (
        f"{FIRST}  descriptions: [It blurs.]  {HERE}\n",
        "versions.0.descriptions: expected a mapping, got ['It blurs.']",
    ),
    "a repeated input": (
        _marked(
            "inputs: [{name: X, type: T}]\n", f"inputs: [{{name: X, type: T}}, {{name: X, type: T}}] {HERE}\n"
        ),
        "versions.0.inputs.1.name: 'X' is repeated",
    ),
    "a text at the top": (
        _marked("name: Blur\n", f"name: Blur\ndescription: It blurs.  {HERE}\n"),
        "description: unknown key",
    ),
    "a text in a parameter": (
        _marked(
            "inputs: [{name: X, type: T}]\n", f"inputs: [{{name: X, type: T, description: A.}}] {HERE}\n"
        ),
        "versions.0.inputs.0.description: texts belong in `descriptions` of the version",
    ),
}


@pytest.mark.parametrize(("content", "reason"), INVALID.values(), ids=INVALID)
def test_refuses_wrong_texts_with_their_line(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        _load(tmp_path, content)
    lines = [number for number, line in enumerate(content.splitlines(), 1) if HERE in line]
    assert isinstance(caught.value, InvalidDefinition)
    reasons = [each.reason for each in caught.value.findings if [each.place.line] == lines]
    assert any(each.startswith(reason) for each in reasons)


def _softmax() -> OperatorVersion:
    """Return a version without loaded texts."""
    version = Registry((OPSETS,)).get_schema("Softmax", 12)
    assert "description" not in version.__dict__
    return version


def test_loads_all_texts_of_an_operator_when_one_is_read() -> None:
    version = _softmax()
    assert version.inputs[0].description
    assert version.__dict__["description"] == version.description
    assert "description" in version.attributes["axis"].__dict__


def test_copies_have_the_texts() -> None:
    for copied in (
        pickle.loads(pickle.dumps(_softmax())),
        copy.deepcopy(_softmax()),
        dataclasses.replace(_softmax(), shape=""),
    ):
        assert TEXT_LOADER not in copied.__dict__
        assert texts_of(copied) == texts_of(_softmax())


def test_an_unknown_attribute_is_an_error() -> None:
    with pytest.raises(AttributeError, match="descriptions"):
        _ = _softmax().descriptions  # type: ignore[attr-defined]


CONVERSION = """
import sys
import opshift
from opshift.registry import precompiled
def refuse(*arguments):
    raise AssertionError("a text was loaded")
precompiled.DESCRIPTIONS.text = refuse
opshift.convert_version(sys.argv[1], 17)
opshift.convert_version(sys.argv[1], 11)
"""


def test_a_conversion_loads_no_texts() -> None:
    model = ROOT / "tests" / "golden" / "segmenter-9.onnx"
    subprocess.run([sys.executable, "-c", CONVERSION, str(model)], check=True)
