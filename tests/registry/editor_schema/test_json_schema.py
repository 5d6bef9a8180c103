"""`opsets/schema.json` accepts every definition and agrees with the loader."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.mistakes import MISTAKES
from support.mistakes import VALID as VALID_FILE

from opshift.registry.errors import DefinitionError
from opshift.registry.loader import load_operator
from opshift.registry.steps import VERBS
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import load_yaml

pytestmark = pytest.mark.every_case

ROOT = Path(__file__).resolve().parents[3]
OPSETS = ROOT / "opsets"
DEFINITIONS = sorted(OPSETS.glob("*/*.yaml"))
SCHEMA = json.loads((OPSETS / "schema.json").read_text("utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
TYPES = TypeSets({"floats": ["tensor(float)", "tensor(double)"]})


def _problems(content: object) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(content)]


def test_the_schema_names_its_generator() -> None:
    assert "tools/generate.py" in SCHEMA["$comment"]
    assert (OPSETS / "schema.json").read_text("utf-8").endswith("}\n")


def test_the_schema_conforms_to_draft_2020_12() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_schema_defines_exactly_the_parts_it_refers_to() -> None:
    parts = json.dumps(SCHEMA).split('"$ref": "#/$defs/')[1:]
    assert {part.partition('"')[0] for part in parts} == set(SCHEMA["$defs"])


def test_the_schema_lists_every_verb() -> None:
    assert set(SCHEMA["$defs"]["Verb"]["properties"]) == set(VERBS)


def test_finds_the_definitions() -> None:
    assert len(DEFINITIONS) >= 238


@pytest.mark.parametrize("path", DEFINITIONS, ids=[f"{path.parent.name}.{path.stem}" for path in DEFINITIONS])
def test_a_definition_is_valid_and_refers_to_the_schema(path: Path) -> None:
    assert _problems(load_yaml(path)) == []
    assert path.read_text("utf-8").startswith("# yaml-language-server: $schema=../schema.json\n")


# Definitions that both the schema and the loader accept or refuse


def _definition(*versions: Any, **fields: Any) -> dict[str, Any]:
    return {"domain": "com.acme", "name": "Blur", "versions": list(versions), **fields}


def _single_version(**fields: Any) -> dict[str, Any]:
    return _definition({"since_version": 1, **fields})


def _step(**fields: Any) -> dict[str, Any]:
    return _definition({"since_version": 1}, {"since_version": 2, "step": fields})


def _up(*verbs: Any) -> dict[str, Any]:
    return _step(up=list(verbs))


def _removal(**fields: Any) -> dict[str, Any]:
    return _single_version(removal={"removed_in": 2, **fields})


def _parameter(**fields: Any) -> dict[str, Any]:
    return _single_version(inputs=[{"name": "X", "type": "tensor(float)", **fields}])


def _attribute(**fields: Any) -> dict[str, Any]:
    return _single_version(attributes={"axis": fields})


VALID = {
    "required keys only": _single_version(),
    "a shape rule for all versions": _single_version() | {"shape": "same_as_first"},
    "a description and a shape rule of a version": _single_version(
        descriptions={"operator": "It blurs."}, shape="same_as_first"
    ),
    "descriptions of every kind": _single_version(
        inputs=[{"name": "X", "type": "T"}],
        outputs=[{"name": "Y", "type": "T"}],
        attributes={"size": {"type": "INT"}},
        type_constraints={"T": "tensor(float)"},
        descriptions={
            "operator": "It blurs.",
            "inputs": {"X": "A picture."},
            "outputs": {"Y": "The blurred picture."},
            "attributes": {"size": "Number of pixels."},
            "types": {"T": "Type of a pixel."},
        },
    ),
    "a packed version number": _definition({"since_version": 0x1000200000159}),
    "every field of a parameter": _single_version(
        inputs=[
            {
                "name": "X",
                "type": "tensor(float)",
                "option": "variadic",
                "homogeneous": False,
                "min_arity": 2,
                "differentiation": "differentiable",
                "type_attribute": "to",
                "element_attributes": ["sizes"],
                "absent_type": "X",
            }
        ],
        attributes={"to": {"type": "INT"}, "sizes": {"type": "INTS"}},
    ),
    "every field of an attribute": _attribute(
        type="INTS", default=[1, 2], values=[1, 2, 3], minimum=1, maximum=3
    ),
    "the meaning of an absent attribute": _attribute(type="INTS", absent="all in order"),
    "a required attribute": _attribute(type="GRAPH", required=True),
    "types by the name of a set": _single_version(type_constraints={"T": "floats"}),
    "types one by one": _single_version(type_constraints={"T": ["floats", "tensor(int64)", "seq(floats)"]}),
    "determinism and status": _single_version(determinism="non_deterministic", status="EXPERIMENTAL"),
    "a deprecation": _single_version(deprecation={"replaced_by": "Sharpen", "mapping": "Turn it round."}),
    "an empty deprecation": _single_version(deprecation={}),
    "a removal that is refused": _removal(up={"refuse": "it has no successor"}),
    "a removal with a verb": _removal(
        replaced_by="Sharpen", mapping="Rename the node.", up=[{"rename_op": "Sharpen"}]
    ),
    "an answer for earlier opsets": _single_version(before=[{"rename_op": "Sharpen"}]),
    "a step without directions": _step(change="It takes doubles."),
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

INVALID: dict[str, object] = {
    "an empty file": None,
    "a list": [],
    "no domain": {"name": "Blur", "versions": [{"since_version": 1}]},
    "no name": {"domain": "com.acme", "versions": [{"since_version": 1}]},
    "no versions": {"domain": "com.acme", "name": "Blur"},
    "an empty list of versions": _definition(),
    "versions by name": _definition(versions={"1": {}}),
    "an unknown key": _single_version() | {"colour": "red"},
    "an unknown key of a version": _single_version(input=[]),
    "the domain in a version": _single_version(domain="com.acme"),
    "the name in a version": _single_version(name="Blur"),
    "no since_version": _definition({"status": "STABLE"}),
    "since_version is a word": _definition({"since_version": "first"}),
    "since_version is 0": _definition({"since_version": 0}),
    "since_version is not whole": _definition({"since_version": 1.5}),
    "an unknown status": _single_version(status="OLD"),
    "an unknown determinism": _single_version(determinism="random"),
    "inputs by name": _single_version(inputs={"X": {"type": "tensor(float)"}}),
    "a parameter without a name": _single_version(inputs=[{"type": "tensor(float)"}]),
    "a parameter without a type": _single_version(outputs=[{"name": "Y"}]),
    "a parameter with an unknown option": _parameter(option="required"),
    "a parameter with an unknown key": _parameter(optional=True),
    "an unknown differentiation": _parameter(differentiation="smooth"),
    "attributes as a list": _single_version(attributes=[{"name": "axis", "type": "INT"}]),
    "an attribute without a type": _attribute(default=1),
    "an attribute of an unknown type": _attribute(type="BOOL"),
    "a default that is a mapping": _attribute(type="INT", default={"value": 1}),
    "values that are not a list": _attribute(type="INT", values=1),
    "a minimum that is a word": _attribute(type="INT", minimum="one"),
    "types that are a number": _single_version(type_constraints={"T": 3}),
    "types by name": _single_version(type_constraints={"T": {"floats": True}}),
    "a list of types with a number": _single_version(type_constraints={"T": ["floats", 3]}),
    "a deprecation that is a word": _single_version(deprecation="Sharpen"),
    "a removal without an opset": _single_version(removal={"up": "adapter"}),
    "a removal without an upgrade": _removal(replaced_by="Sharpen"),
    "a removal from the first opset": _single_version(removal={"removed_in": 1, "up": "adapter"}),
    "a removal with an unknown verb": _removal(up=[{"rename": "Sharpen"}]),
    "an unknown verb for earlier opsets": _single_version(before=[{"rename": "Sharpen"}]),
    "a step that is a word": _definition({"since_version": 1}, {"since_version": 2, "step": "compatible"}),
    "a step in an unknown direction": _step(sideways="compatible"),
    "an unknown action": _step(up="compatibel"),
    "a refusal without a sentence": _step(down={"refuse": "no"}),
    "a refusal with an unknown key": _step(down={"refuse": "it has no earlier form", "why": "so"}),
    "a verb outside a list": _step(up={"drop_attribute": "axis"}),
    "an unknown verb": _up({"remove_attribute": "axis"}),
    "a verb with two keys": _up({"drop_attribute": "axis", "rename_op": "Sharpen"}),
    "a verb without a key": _up({}),
    "a verb that is a word": _up("compatible"),
    "the fields of a verb without its name": _up({"attribute": "axis"}),
    "a verb with a number": _up({"drop_attribute": 3}),
    "a verb with a list": _up({"drop_attribute": ["axis", "mode"]}),
    "a shorthand of a verb with two required fields": _up({"add_attribute": "axis"}),
    "a verb without a required field": _up({"rename_attribute": {"attribute": "axis"}}),
    "a verb with an unknown key": _up({"drop_attribute": {"attribute": "axis", "if": 0}}),
    "an invalid rank": _up({"attribute_to_input": {"attribute": "k", "rank": 2}}),
    "values that are renamed to numbers": _up({"rename_value": {"attribute": "mode", "values": {"a": 1}}}),
}


def _load(content: object, folder: Path) -> None:
    path = folder / "com.acme" / "Blur.yaml"
    path.parent.mkdir()
    path.write_text(json.dumps(content).replace("-Infinity", "-.inf"), "utf-8")
    load_operator(path, TYPES, draft=True)


@pytest.mark.parametrize("content", VALID.values(), ids=VALID)
def test_schema_and_loader_accept_a_valid_definition(tmp_path: Path, content: dict[str, Any]) -> None:
    assert _problems(content) == []
    _load(content, tmp_path)


@pytest.mark.parametrize("content", INVALID.values(), ids=INVALID)
def test_schema_and_loader_refuse_an_invalid_definition(tmp_path: Path, content: object) -> None:
    assert _problems(content)
    with pytest.raises(DefinitionError):
        _load(content, tmp_path)


@pytest.mark.parametrize("name", MISTAKES)
def test_schema_refuses_mistakes_that_it_can_express(tmp_path: Path, name: str) -> None:
    mistake = MISTAKES[name]
    if mistake.rule.startswith("yaml."):
        return
    path = tmp_path / "Blur.yaml"
    path.write_text(mistake.text, "utf-8")
    assert bool(_problems(load_yaml(path))) == mistake.in_schema


def test_schema_accepts_the_definition_without_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "Blur.yaml"
    path.write_text(VALID_FILE, "utf-8")
    assert _problems(load_yaml(path)) == []


def test_the_schema_describes_every_property() -> None:
    parts = {"Operator": SCHEMA, **SCHEMA["$defs"]}
    properties = {
        (name, key): each for name, part in parts.items() for key, each in part["properties"].items()
    }
    assert len(properties) > 90
    assert [key for key, each in properties.items() if not each.get("description")] == []


def test_the_valid_definitions_use_every_verb() -> None:
    rows = ("verbs by their shorthand", "verbs in full")
    used = {name for row in rows for verb in VALID[row]["versions"][1]["step"]["up"] for name in verb}
    assert used == set(VERBS)
