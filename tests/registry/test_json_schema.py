"""`opsets/schema.json`: fresh, true of every definition, and of one mind with the loader."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from opshift.registry.errors import DefinitionError
from opshift.registry.loader import load_operator
from opshift.registry.steps import VERBS
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import load_yaml

ROOT = Path(__file__).resolve().parents[2]
OPSETS = ROOT / "opsets"
DEFINITIONS = sorted(OPSETS.glob("*/*.yaml"))
SCHEMA = json.loads((OPSETS / "schema.json").read_text("utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
TYPES = TypeSets({"floats": ["tensor(float)", "tensor(double)"]})


def _problems(content: object) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(content)]


# The file


def test_the_schema_says_what_wrote_it() -> None:
    assert "tools/generate.py" in SCHEMA["$comment"]
    assert (OPSETS / "schema.json").read_text("utf-8").endswith("}\n")


def test_the_schema_is_one_of_draft_2020_12() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_schema_refers_to_nothing_that_it_lacks_and_holds_nothing_unused() -> None:
    parts = json.dumps(SCHEMA).split('"$ref": "#/$defs/')[1:]
    assert {part.partition('"')[0] for part in parts} == set(SCHEMA["$defs"])


def test_the_schema_has_every_verb() -> None:
    assert set(SCHEMA["$defs"]["Verb"]["properties"]) == set(VERBS)


# The definitions


def test_there_are_definitions() -> None:
    assert len(DEFINITIONS) >= 238


@pytest.mark.parametrize("path", DEFINITIONS, ids=[f"{path.parent.name}.{path.stem}" for path in DEFINITIONS])
def test_a_definition_is_valid_and_names_the_schema(path: Path) -> None:
    assert _problems(load_yaml(path)) == []
    assert path.read_text("utf-8").startswith("# yaml-language-server: $schema=../schema.json\n")


# What an editor accepts and marks, which is what the loader accepts and refuses


def _file(*versions: Any, **fields: Any) -> dict[str, Any]:
    return {"domain": "com.acme", "name": "Blur", "versions": list(versions), **fields}


def _first(**fields: Any) -> dict[str, Any]:
    return _file({"since_version": 1, **fields})


def _step(**fields: Any) -> dict[str, Any]:
    return _file({"since_version": 1}, {"since_version": 2, "step": fields})


def _up(*verbs: Any) -> dict[str, Any]:
    return _step(up=list(verbs))


def _removal(**fields: Any) -> dict[str, Any]:
    return _first(removal={"removed_in": 2, **fields})


def _parameter(**fields: Any) -> dict[str, Any]:
    return _first(inputs=[{"name": "X", "type": "tensor(float)", **fields}])


def _attribute(**fields: Any) -> dict[str, Any]:
    return _first(attributes={"axis": fields})


SOUND = {
    "the least that there can be": _first(),
    "a description and a shape rule for all versions": _first()
    | {"description": "It blurs.", "shape": "first"},
    "a description and a shape rule of a version": _first(description="It blurred.", shape="first"),
    "a version that is packed": _file({"since_version": 0x1000200000159}),
    "every field of a parameter": _parameter(
        option="variadic",
        homogeneous=False,
        min_arity=2,
        differentiation="differentiable",
        type_attribute="to",
        absent_type="X",
    ),
    "every field of an attribute": _attribute(
        type="INTS", default=[1, 2], values=[1, 2, 3], minimum=1, maximum=3, absent="all in order"
    ),
    "an attribute that has to be there": _attribute(type="GRAPH", required=True),
    "types by the name of a set": _first(type_constraints={"T": "floats"}),
    "types one by one": _first(type_constraints={"T": ["floats", "tensor(int64)", "seq(floats)"]}),
    "randomness": _first(determinism="non_deterministic", status="EXPERIMENTAL"),
    "a deprecation": _first(deprecation={"replaced_by": "Sharpen", "mapping": "Turn it round."}),
    "a deprecation that says nothing": _first(deprecation={}),
    "a removal that is refused": _removal(up={"refuse": "it has no successor"}),
    "a removal with a verb": _removal(
        replaced_by="Sharpen", mapping="As it is.", up=[{"rename_op": "Sharpen"}]
    ),
    "what was before": _first(before=[{"rename_op": "Sharpen"}]),
    "a step without an answer": _step(change="It takes doubles."),
    "a compatible step": _step(change="It blurs more.", up="compatible", down="adapter"),
    "a refusal": _step(down={"refuse": "it has no earlier form", "remedy": "fold the input"}),
    "verbs by their shorthand": _up(
        {"drop_attribute": "a"},
        {"ignore_attribute": "b"},
        {"attribute_to_input": "c"},
        {"input_to_attribute": "d"},
        {"require_no_input": "e"},
        {"require_no_output": "f"},
        {"rename_op": "Sharpen"},
    ),
    "verbs in full": _up(
        {"drop_attribute": {"attribute": "a"}},
        {"ignore_attribute": {"attribute": "b"}},
        {"attribute_to_input": {"attribute": "c", "input": "C", "rank": 1}},
        {"input_to_attribute": {"input": "D", "attribute": "d"}},
        {"require_no_input": {"input": "e"}},
        {"require_no_output": {"output": "f"}},
        {"rename_op": {"op_type": "Sharpen"}},
        {"add_attribute": {"attribute": "g", "value": float("-inf")}},
        {"rename_attribute": {"attribute": "h", "to": "H"}},
        {"require_attribute": {"attribute": "i", "value": [1, 1]}},
        {"rename_value": {"attribute": "j", "values": {"bilinear": "linear"}}},
    ),
}

BROKEN: dict[str, object] = {
    "nothing": None,
    "a list": [],
    "no domain": {"name": "Blur", "versions": [{"since_version": 1}]},
    "no name": {"domain": "com.acme", "versions": [{"since_version": 1}]},
    "no versions": {"domain": "com.acme", "name": "Blur"},
    "an empty list of versions": _file(),
    "versions by name": _file(versions={"1": {}}),
    "an unknown key": _first() | {"colour": "red"},
    "an unknown key of a version": _first(input=[]),
    "the domain in a version": _first(domain="com.acme"),
    "the name in a version": _first(name="Blur"),
    "no since_version": _file({"status": "STABLE"}),
    "since_version is a word": _file({"since_version": "first"}),
    "since_version is 0": _file({"since_version": 0}),
    "since_version has a fraction": _file({"since_version": 1.5}),
    "an unknown status": _first(status="OLD"),
    "an unknown determinism": _first(determinism="random"),
    "inputs by name": _first(inputs={"X": {"type": "tensor(float)"}}),
    "a parameter without a name": _first(inputs=[{"type": "tensor(float)"}]),
    "a parameter without a type": _first(outputs=[{"name": "Y"}]),
    "a parameter of an unknown option": _parameter(option="required"),
    "a parameter with an unknown key": _parameter(optional=True),
    "an unknown differentiation": _parameter(differentiation="smooth"),
    "attributes as a list": _first(attributes=[{"name": "axis", "type": "INT"}]),
    "an attribute without a type": _attribute(default=1),
    "an attribute of no type of ONNX": _attribute(type="BOOL"),
    "a default that is a mapping": _attribute(type="INT", default={"value": 1}),
    "one value that is no list": _attribute(type="INT", values=1),
    "a minimum that is a word": _attribute(type="INT", minimum="one"),
    "types that are a number": _first(type_constraints={"T": 3}),
    "types by name": _first(type_constraints={"T": {"floats": True}}),
    "a list of types that has a number": _first(type_constraints={"T": ["floats", 3]}),
    "a deprecation that is a word": _first(deprecation="Sharpen"),
    "a removal that does not say when": _first(removal={"up": "adapter"}),
    "a removal that does not say how a node goes on": _removal(replaced_by="Sharpen"),
    "a removal from the first opset": _first(removal={"removed_in": 1, "up": "adapter"}),
    "a removal with an unknown verb": _removal(up=[{"rename": "Sharpen"}]),
    "what was before, with an unknown verb": _first(before=[{"rename": "Sharpen"}]),
    "a step that is a word": _file({"since_version": 1}, {"since_version": 2, "step": "compatible"}),
    "a step in an unknown direction": _step(sideways="compatible"),
    "an unknown answer": _step(up="compatibel"),
    "a refusal without a sentence": _step(down={"refuse": "no"}),
    "a refusal with an unknown key": _step(down={"refuse": "it has no earlier form", "why": "so"}),
    "one verb that is no list": _step(up={"drop_attribute": "axis"}),
    "an unknown verb": _up({"remove_attribute": "axis"}),
    "a verb of two keys": _up({"drop_attribute": "axis", "rename_op": "Sharpen"}),
    "a verb of no key": _up({}),
    "a verb that is a word": _up("compatible"),
    "a verb by the fields of its model": _up({"attribute": "axis"}),
    "a verb of a number": _up({"drop_attribute": 3}),
    "a verb of a list": _up({"drop_attribute": ["axis", "mode"]}),
    "a shorthand where more is needed": _up({"add_attribute": "axis"}),
    "a verb that lacks a field": _up({"rename_attribute": {"attribute": "axis"}}),
    "a verb with an unknown key": _up({"drop_attribute": {"attribute": "axis", "if": 0}}),
    "a rank that is none": _up({"attribute_to_input": {"attribute": "k", "rank": 2}}),
    "values that are renamed to numbers": _up({"rename_value": {"attribute": "mode", "values": {"a": 1}}}),
}


def _load(content: object, folder: Path) -> None:
    path = folder / "com.acme" / "Blur.yaml"
    path.parent.mkdir()
    path.write_text(json.dumps(content).replace("-Infinity", "-.inf"), "utf-8")
    load_operator(path, TYPES)


@pytest.mark.parametrize("content", SOUND.values(), ids=SOUND)
def test_a_sound_file_is_accepted_by_both(tmp_path: Path, content: dict[str, Any]) -> None:
    assert _problems(content) == []
    _load(content, tmp_path)


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused_by_both(tmp_path: Path, content: object) -> None:
    assert _problems(content)
    with pytest.raises(DefinitionError):
        _load(content, tmp_path)


def test_the_sound_files_use_every_verb() -> None:
    files = ("verbs by their shorthand", "verbs in full")
    used = {name for file in files for verb in SOUND[file]["versions"][1]["step"]["up"] for name in verb}
    assert used == set(VERBS)
