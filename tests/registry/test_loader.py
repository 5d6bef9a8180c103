"""Invalid definitions are refused with their file and line; YAML scalars keep their obvious types."""

from pathlib import Path
from typing import Any

import pytest

from opshift.model.errors import UsageError
from opshift.registry.errors import DefinitionError, InvalidDefinition
from opshift.registry.loader import load_operator
from opshift.registry.models import Operator
from opshift.registry.registry import Registry, default_registry, load_registry
from opshift.registry.type_sets import TypeSets
from opshift.registry.yaml_files import load_yaml

HERE = "# <--"
"""Marks the line with the error."""
TYPES = "floats: [tensor(float), tensor(double)]\nnumbers: [floats, tensor(int64)]\n"
TOP = "domain: com.acme\nname: Blur\n"
FIRST = f"{TOP}versions:\n- since_version: 1\n"
SECOND = f"{FIRST}- since_version: 2\n"


def _write(folder: Path, content: str, types: str = TYPES) -> Path:
    """Write `com.acme/Blur.yaml` and `types.yaml`."""
    path = folder / "com.acme" / "Blur.yaml"
    path.parent.mkdir()
    path.write_text(content, "utf-8")
    (folder / "types.yaml").write_text(types, "utf-8")
    return path


def _load(path: Path) -> Operator:
    return load_operator(path, TypeSets.load(path.parent.parent / "types.yaml"))


def _marked_line(content: str) -> int:
    (line,) = (number for number, text in enumerate(content.splitlines(), 1) if HERE in text)
    return line


# Valid definitions


def test_expands_the_type_sets_of_a_definition(tmp_path: Path) -> None:
    content = f"""{TOP}shape: same_as_first
versions:
- since_version: 1
  inputs:
  - {{name: X, type: T}}
  - {{name: Y, type: U}}
  type_constraints: {{T: floats, U: [numbers, seq(floats), tensor(string)]}}
- since_version: 2
  step: {{change: It blurs more., up: adapter, down: adapter}}
  inputs: [{{name: X, type: T}}]
  attributes: {{radius: {{type: INT, default: 1}}}}
  type_constraints: {{T: floats}}
"""
    operator = _load(_write(tmp_path, content))
    first, second = operator.versions
    assert [(version.domain, version.name, version.shape) for version in operator.versions] == [
        ("com.acme", "Blur", "same_as_first")
    ] * 2
    assert first.type_constraints == {
        "T": ("tensor(double)", "tensor(float)"),
        "U": (
            "seq(tensor(double))",
            "seq(tensor(float))",
            "tensor(double)",
            "tensor(float)",
            "tensor(int64)",
            "tensor(string)",
        ),
    }
    assert second.step is not None
    assert (second.step.change, second.step.up) == ("It blurs more.", "adapter")


# Invalid definitions: content of the file and part of the reason.

INVALID = {
    # Invalid YAML
    "a repeated key": (f"{FIRST}  inputs: []\n  inputs: []  {HERE}\n", "key 'inputs' is repeated"),
    "a repeated key of a flow mapping": (
        f"{FIRST}  inputs:\n  - {{name: X, name: Y, type: tensor(float)}}  {HERE}\n",
        "key 'name' is repeated",
    ),
    "a repeated type variable": (
        f"{FIRST}  type_constraints:\n    T: [floats]\n    T: [numbers]  {HERE}\n",
        "key 'T' is repeated",
    ),
    "a key that is a number": (
        f"{FIRST}  attributes:\n    1: {{type: INT}}  {HERE}\n",
        "key 1 is not a string",
    ),
    "a key that is a list": (f"{FIRST}  ? [a]  {HERE}\n  : b\n", "key ['a'] is not a string"),
    "an unclosed bracket": (
        f"{FIRST}  inputs: [{{name: X}}\n  outputs: []  {HERE}\n",
        "did not find expected",
    ),
    "a tab as indentation": (
        f"{FIRST}\tinputs: []  {HERE}\n",
        "found a tab character that violates indentation",
    ),
    "two documents": (f"{FIRST}---  {HERE}\nname: Blur\n", "but found another document"),
    "a Python object": (
        f"{FIRST}  status: !!python/name:os.system  {HERE}\n",
        "unknown tag",
    ),
    "an unknown alias": (f"{FIRST}  inputs: *x  {HERE}\n", "found undefined alias"),
    "a control character": (f"{FIRST}  status: \0  {HERE}\n", "control characters are not allowed"),
    # Invalid definitions
    "a comment only": (HERE, "is not an operator definition"),
    "a list": (f"- domain: com.acme  {HERE}\n", "is not an operator definition"),
    "a string": (f"Blur  {HERE}", "is not an operator definition"),
    "a domain that differs from the folder": (
        f"domain: com.acne  {HERE}\nname: Blur\nversions: []\n",
        "domain: must be com.acme to match the path",
    ),
    "a name that differs from the file": (
        f"domain: com.acme\nname: Blurr  {HERE}\nversions: []\n",
        "name: must be Blur to match the path",
    ),
    "no domain": (f"name: Blur  {HERE}\nversions: []\n", "domain: must be com.acme to match the path"),
    "no versions": (f"domain: com.acme  {HERE}\nname: Blur\n", "versions: the key is missing"),
    "an empty list of versions": (
        f"{TOP}versions: []  {HERE}\n",
        "versions: expected 1 or more items, got []",
    ),
    "versions that are not a list": (
        f"{TOP}versions: 3  {HERE}\n",
        "versions: expected a list, got 3",
    ),
    "a version that is not a mapping": (
        f"{FIRST}- 2  {HERE}\n",
        "versions.1: expected a mapping, got 2",
    ),
    "an unknown key": (f"{FIRST}colour: red  {HERE}\n", "colour: unknown key"),
    "an unknown key of a version": (
        f"{FIRST}  input:  {HERE}\n  - {{name: X}}\n",
        "versions.0.input: unknown key",
    ),
    "verbs outside of the step": (
        f"{SECOND}  down:  {HERE}\n  - drop_attribute: axis\n",
        "versions.1.down: unknown key",
    ),
    "an unknown key of an attribute": (
        f"{FIRST}  attributes:\n    axis:\n      type: INT\n      min: 0  {HERE}\n",
        "versions.0.attributes.axis.min: unknown key",
    ),
    "an unknown key of a parameter": (
        f"{FIRST}  inputs:\n  - {{name: X, type: T}}\n  - {{name: Y, type: T, optional: true}}  {HERE}\n",
        "versions.0.inputs.1.optional: unknown key",
    ),
    "a version with the domain": (
        f"{FIRST}  domain: com.acme  {HERE}\n",
        "versions.0.domain: belongs at the top of the file, not in a version",
    ),
    "a version with a different name": (
        f"{FIRST}  name: Sharpen  {HERE}\n",
        "versions.0.name: belongs at the top of the file, not in a version",
    ),
    "a version without since_version": (
        f"{TOP}versions:\n- status: STABLE  {HERE}\n",
        "versions.0.since_version: the key is missing",
    ),
    "since_version is a string": (
        f"{TOP}versions:\n- since_version: first  {HERE}\n",
        "versions.0.since_version: expected an integer, got 'first'",
    ),
    "since_version is not whole": (
        f"{TOP}versions:\n- since_version: 1.5  {HERE}\n",
        "versions.0.since_version: expected an integer, got 1.5",
    ),
    "since_version is 0": (
        f"{TOP}versions:\n- since_version: 0  {HERE}\n",
        "versions.0.since_version: expected 1 or more, got 0",
    ),
    "descending versions": (
        f"{FIRST}- status: STABLE\n  since_version: 7\n- status: STABLE\n  since_version: 6  {HERE}\n",
        "`since_version` must increase from version to version, got [1, 7, 6]",
    ),
    "a repeated version": (
        f"{FIRST}- since_version: 1  {HERE}\n",
        "`since_version` must increase from version to version, got [1, 1]",
    ),
    "an unknown status": (
        f"{FIRST}  status: OLD  {HERE}\n",
        "versions.0.status: expected 'STABLE' or 'EXPERIMENTAL', got 'OLD'",
    ),
    # Types
    "an input with an unknown type variable": (
        f"{FIRST}  inputs:\n  - {{name: X, type: T}}\n  - {{name: Y, type: U}}  {HERE}\n"
        "  type_constraints: {T: floats}\n",
        "versions.0.inputs.1.type: 'U' is neither a type nor a type variable",
    ),
    "an output with an unknown type variable": (
        f"{FIRST}  outputs:\n  - name: Y\n    type: T  {HERE}\n",
        "versions.0.outputs.0.type: 'T' is neither a type nor a type variable",
    ),
    "an unknown type set in a list": (
        f"{FIRST}  type_constraints:\n    T: [floats]\n    U: [flaots]  {HERE}\n",
        "'flaots' is neither a type nor a set of types",
    ),
    "an unknown type set": (
        f"{FIRST}  type_constraints:\n    T: flaots  {HERE}\n",
        "'flaots' is neither a type nor a set of types",
    ),
    "sequences of an unknown type set": (
        f"{FIRST}  type_constraints:\n    T: [seq(flaots)]  {HERE}\n",
        "'seq(flaots)' is neither a type nor a set of types",
    ),
    "type constraints that are a list": (
        f"{FIRST}  type_constraints: [floats]  {HERE}\n",
        "versions.0.type_constraints: expected a mapping, got ['floats']",
    ),
    "a type that is a number": (
        f"{FIRST}  type_constraints:\n    T: 3  {HERE}\n",
        "versions.0.type_constraints.T: expected a list, got 3",
    ),
    "a number in a list of types": (
        f"{FIRST}  type_constraints:\n    T:\n    - floats\n    - 3  {HERE}\n",
        "versions.0.type_constraints.T.1: expected a string, got 3",
    ),
    # Attributes
    "a required attribute with a default": (
        f"{FIRST}  attributes:\n    axis: {{type: INT, required: true, default: 1}}  {HERE}\n",
        "versions.0.attributes.axis: a required attribute cannot have a default",
    ),
    "a required attribute with a default on several lines": (
        f"{FIRST}  attributes:\n    axis:  {HERE}\n      type: INT\n      required: true\n      default: 1\n",
        "versions.0.attributes.axis: a required attribute cannot have a default",
    ),
    "an attribute without a type": (
        f"{FIRST}  attributes:\n    axis: {{default: 1}}  {HERE}\n",
        "versions.0.attributes.axis.type: the key is missing",
    ),
    "an attribute of an unknown type": (
        f"{FIRST}  attributes:\n    axis: {{type: INT64}}  {HERE}\n",
        "versions.0.attributes.axis.type: expected 'FLOAT', 'INT'",
    ),
    "a default that is a mapping": (
        f"{FIRST}  attributes:\n    axis:\n      type: INT\n      default: {{a: 1}}  {HERE}\n",
        "versions.0.attributes.axis.default: expected an integer, a number, a string or a list",
    ),
    "a flag that is a string": (
        f"{FIRST}  attributes:\n    axis: {{type: INT, required: maybe}}  {HERE}\n",
        "versions.0.attributes.axis.required: expected true or false, got 'maybe'",
    ),
    # Steps
    "a step of the first version": (
        f"{FIRST}  step:  {HERE}\n    up: compatible\n",
        "the first version cannot have a step",
    ),
    "an unknown action": (
        f"{SECOND}  step:\n    change: It blurs more.\n    up: compatibel  {HERE}\n",
        "versions.1.step.up: expected 'compatible', 'adapter', a mapping or a list, got 'compatibel'",
    ),
    "an unknown direction": (
        f"{SECOND}  step:\n    up: compatible\n    sideways: adapter  {HERE}\n",
        "versions.1.step.sideways: unknown key",
    ),
    "a step that is a string": (
        f"{SECOND}  step: compatible  {HERE}\n",
        "versions.1.step: expected a mapping, got 'compatible'",
    ),
    "a refusal without a sentence": (
        f"{SECOND}  step:\n    down:\n      refuse: never  {HERE}\n",
        "versions.1.step.down.refuse: expected 10 or more characters, got 'never'",
    ),
    "a refusal with an unknown key": (
        f"{SECOND}  step:\n    down:\n      refuse: it has no earlier form\n      why: so  {HERE}\n",
        "versions.1.step.down.why: unknown key",
    ),
    "an unknown verb": (
        f"{SECOND}  step:\n    up:\n    - drop_attribute: axis\n    - remove_attribute: axis  {HERE}\n",
        "versions.1.step.up.1: unknown verb 'remove_attribute'",
    ),
    "a verb with two keys": (
        f"{SECOND}  step:\n    down:\n    - drop_attribute: axis  {HERE}\n      rename_op: Sharpen\n",
        "versions.1.step.down.0: expected a verb, which is a mapping with one key, got {'drop_attribute'",
    ),
    "a verb that is a string": (
        f"{SECOND}  step:\n    up: [compatible]  {HERE}\n",
        "versions.1.step.up.0: expected a verb, which is a mapping with one key, got 'compatible'",
    ),
    "a verb without a required field": (
        f"{SECOND}  step:\n    up:\n    - add_attribute: axis  {HERE}\n",
        "versions.1.step.up.0.add_attribute: expected a mapping with attribute, value, got 'axis'",
    ),
    "a verb with an unknown key": (
        f"{SECOND}  step:\n    up:\n    - drop_attribute:\n        attribute: axis\n        if: 0  {HERE}\n",
        "versions.1.step.up.0.drop_attribute.if: unknown key",
    ),
    "an unknown verb of a removal": (
        f"{FIRST}  removal:\n    removed_in: 2\n    up:\n    - rename: Sharpen  {HERE}\n",
        "versions.0.removal.up.0: unknown verb 'rename'",
    ),
    "a removal without an upgrade": (
        f"{FIRST}  removal:  {HERE}\n    removed_in: 2\n",
        "versions.0.removal.up: the key is missing",
    ),
    "an unknown verb for earlier opsets": (
        f"{FIRST}  before:\n  - rename: Sharpen  {HERE}\n",
        "versions.0.before.0: unknown verb 'rename'",
    ),
    "a later version with an answer for earlier opsets": (
        f"{SECOND}  before: adapter  {HERE}\n",
        "only the first version can have `before`",
    ),
}


@pytest.mark.parametrize(("content", "reason"), INVALID.values(), ids=INVALID)
def test_refuses_an_invalid_definition_with_its_line(tmp_path: Path, content: str, reason: str) -> None:
    path = _write(tmp_path, content)
    with pytest.raises(DefinitionError) as caught:
        _load(path)
    assert isinstance(caught.value, InvalidDefinition)
    line = _marked_line(content)
    reasons = [each.reason for each in caught.value.findings if str(each.place) == f"{path}:{line}"]
    assert any(reason in each for each in reasons)


def test_a_reason_is_one_line(tmp_path: Path) -> None:
    for name, (content, _) in INVALID.items():
        folder = tmp_path / name
        folder.mkdir()
        with pytest.raises(DefinitionError) as caught:
            _load(_write(folder, content))
        assert caught.value.reason == " ".join(caught.value.reason.split())


def test_refuses_an_empty_file(tmp_path: Path) -> None:
    path = _write(tmp_path, "")
    with pytest.raises(DefinitionError, match="is not an operator definition") as caught:
        _load(path)
    assert str(caught.value.place) == f"{path}:1"


def test_the_error_for_a_missing_file_names_it(tmp_path: Path) -> None:
    path = tmp_path / "com.acme" / "Blur.yaml"
    with pytest.raises(DefinitionError, match="cannot be read: No such file or directory") as caught:
        load_operator(path, TypeSets({}))
    assert str(caught.value.place) == str(path)


def test_the_error_for_invalid_utf8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "Blur.yaml"
    path.write_bytes(b"domain: com.acme\nname: Bl\xffr\n")
    with pytest.raises(DefinitionError, match="is not YAML: invalid leading UTF-8 octet") as caught:
        load_yaml(path)
    assert str(caught.value.place) == f"{path}:2"


def test_refuses_a_value_that_does_not_fit_its_tag(tmp_path: Path) -> None:
    path = tmp_path / "Blur.yaml"
    path.write_text("name: !!float blur\n")
    with pytest.raises(DefinitionError, match="'blur' is not of type float") as caught:
        load_yaml(path)
    assert caught.value.place.file == str(path)


# Invalid type sets: content of `types.yaml` and part of the reason.

INVALID_TYPE_SETS = {
    "a set contains itself": (
        f"floats: [tensor(float)]\nnumbers: [floats, numbers]  {HERE}\n",
        "type set 'numbers' contains itself",
    ),
    "a set contains itself through another set": (
        f"numbers: [floats]  {HERE}\nfloats: [tensor(float), halves]\nhalves: [numbers]\n",
        "type set 'numbers' contains itself",
    ),
    "a set contains sequences of itself": (
        f"floats: [tensor(float)]\nnumbers: [floats, seq(numbers)]  {HERE}\n",
        "type set 'numbers' contains itself",
    ),
    "a set contains an unknown set": (
        f"numbers: [floats]\nfloats: [tensor(float), halves]  {HERE}\n",
        "'halves' is neither a type nor a set of types",
    ),
    "a set contains sequences of an unknown set": (
        f"numbers: [seq(halves)]  {HERE}\n",
        "'seq(halves)' is neither a type nor a set of types",
    ),
    "a set is not a list": (
        f"floats: [tensor(float)]\nnumbers: tensor(float)  {HERE}\n",
        "type set 'numbers' is not a list of types and sets",
    ),
    "a set contains a number": (
        f"numbers: [3]  {HERE}\n",
        "type set 'numbers' is not a list of types and sets",
    ),
    "a repeated set": (
        f"numbers: [tensor(float)]\nnumbers: [tensor(double)]  {HERE}\n",
        "key 'numbers' is repeated",
    ),
    "the file is a list": (f"- numbers  {HERE}\n", "is not a mapping of names to lists of types"),
}


@pytest.mark.parametrize(("types", "reason"), INVALID_TYPE_SETS.values(), ids=INVALID_TYPE_SETS)
def test_refuses_an_invalid_type_set_with_its_line(tmp_path: Path, types: str, reason: str) -> None:
    path = _write(tmp_path, f"{FIRST}  type_constraints: {{T: numbers}}\n", types)
    with pytest.raises(DefinitionError) as caught:
        _load(path)
    assert reason in caught.value.reason
    assert str(caught.value.place) == f"{tmp_path / 'types.yaml'}:{_marked_line(types)}"


def test_merged_type_sets_keep_their_files(tmp_path: Path) -> None:
    own, added = tmp_path / "own.yaml", tmp_path / "added.yaml"
    own.write_text("a: [tensor(float)]\nb: [c]\n")
    added.write_text("a: [tensor(double)]\n")
    merged = TypeSets.load(own).merged(TypeSets.load(added))
    assert merged.expand("a") == ("tensor(double)",)
    with pytest.raises(DefinitionError) as caught:
        merged.expand("b")
    assert str(caught.value.place) == f"{own}:2"


# Folders


def test_refuses_a_folder_without_definitions(tmp_path: Path) -> None:
    (tmp_path / "types.yaml").write_text(TYPES)
    with pytest.raises(DefinitionError, match="contains no operator definitions") as caught:
        Registry((tmp_path,))
    assert str(caught.value.place) == str(tmp_path)
    assert caught.value.remedy == "name the files <domain>/<operator>.yaml"


def test_refuses_a_missing_folder(tmp_path: Path) -> None:
    missing = tmp_path / "acme"
    for read in (default_registry().with_folder, lambda path: load_registry([path])):
        with pytest.raises(UsageError, match="does not exist") as caught:
            read(missing)
        assert str(caught.value.place) == str(missing)


def test_refuses_an_operator_defined_in_two_folders(tmp_path: Path) -> None:
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        folder.mkdir()
        _write(folder, FIRST)
    with pytest.raises(DefinitionError) as caught:
        Registry(folders[:1]).with_folder(folders[1])
    assert str(caught.value.place) == str(folders[1] / "com.acme" / "Blur.yaml")
    assert caught.value.reason == f"is also defined in {folders[0] / 'com.acme' / 'Blur.yaml'}"


def test_adding_a_folder_leaves_the_original_registry_unchanged(tmp_path: Path) -> None:
    folders = tmp_path / "one", tmp_path / "two"
    for folder, name in zip(folders, ("Blur", "Sharpen"), strict=True):
        (folder / "com.acme").mkdir(parents=True)
        (folder / "com.acme" / f"{name}.yaml").write_text(FIRST.replace("Blur", name))
    before = Registry(folders[:1])
    after = before.with_folder(folders[1])
    assert (before.names("com.acme"), after.names("com.acme")) == (("Blur",), ("Blur", "Sharpen"))
    assert (before.folders, after.folders) == (folders[:1], folders)


# YAML scalars

VALUES: dict[str, tuple[str, Any]] = {
    "a small number": ("1e-05", 1e-05),
    "a small number with a decimal point": ("1.0e-05", 1e-05),
    "a large number": ("3.4028234663852886e+38", 3.4028234663852886e38),
    "an exponent without a sign": ("1e3", 1000.0),
    "a fraction": ("-0.75", -0.75),
    "a whole float": ("1.0", 1.0),
    "negative zero": ("-0.0", -0.0),
    "infinity": (".inf", float("inf")),
    "negative infinity": ("-.inf", float("-inf")),
    "not a number": (".nan", float("nan")),
    "an integer": ("13", 13),
    "zero": ("0", 0),
    "a negative integer": ("-1", -1),
    "a packed version": ("281483566645593", 281483566645593),
    "true": ("true", True),
    "false": ("false", False),
    "null": ("null", None),
    "a tilde": ("~", None),
    "nothing": ("", None),
    "n is a string": ("n", "n"),
    "a number with a leading zero is a string": ("013", "013"),
    "a time is a string": ("12:30", "12:30"),
    "a date is a string": ("2017-12-08", "2017-12-08"),
    "a month is a string": ("2017-12", "2017-12"),
    "a hexadecimal number is a string": ("0x1F", "0x1F"),
    "an octal number is a string": ("0o17", "0o17"),
    "a number with an underscore is a string": ("1_000", "1_000"),
    "a number with a plus is a string": ("+1", "+1"),
    "a number that ends in a point is a string": ("1.", "1."),
    "a number that begins with a point is a string": (".5", ".5"),
    "inf is a string": ("inf", "inf"),
    "nan is a string": ("nan", "nan"),
    "NaN is a string": (".NaN", ".NaN"),
    "an equals sign is a string": ("=", "="),
    "a merge key is a string": ("<<", "<<"),
    "a release is a word in quotes": ('"1.10"', "1.10"),
    "true in quotes is a string": ("'true'", "true"),
}


@pytest.mark.parametrize(("text", "value"), VALUES.values(), ids=VALUES)
def test_a_scalar_has_its_obvious_type(tmp_path: Path, text: str, value: object) -> None:
    path = tmp_path / "value.yaml"
    path.write_text(f"value: {text}\nlist: [{text}]\n" if text else "value:\nlist: [~]\n")
    found = load_yaml(path)
    assert (repr(found), type(found["value"])) == (repr({"value": value, "list": [value]}), type(value))


def test_a_merge_key_is_an_ordinary_key(tmp_path: Path) -> None:
    path = tmp_path / "merge.yaml"
    path.write_text("base: &base {a: 1}\nmore:\n  <<: *base\n")
    assert load_yaml(path) == {"base": {"a": 1}, "more": {"<<": {"a": 1}}}


# Opsets that no release has


def _tree(folder: Path, versions: str) -> Registry:
    path = folder / "ai.onnx" / "Blur.yaml"
    path.parent.mkdir()
    path.write_text(f"domain: ai.onnx\nname: Blur\nversions:\n{versions}", "utf-8")
    (folder / "releases.yaml").write_text('onnx:\n  "1.0": {ir_version: 3, opsets: {ai.onnx: 1}}\n', "utf-8")
    return Registry((folder,))


def test_loads_version_of_a_released_opset(tmp_path: Path) -> None:
    assert _tree(tmp_path, "- since_version: 1\n").get_schema("Blur").since_version == 1


@pytest.mark.parametrize(
    "versions",
    [
        "- since_version: 1\n- since_version: 2\n  step: {up: compatible, down: compatible}\n",
        "- since_version: 1\n  removal: {removed_in: 2, up: {refuse: nothing replaces it}}\n",
    ],
    ids=["version", "removal"],
)
def test_refuses_opset_without_a_release(versions: str, tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="no release of ONNX has opset 2") as caught:
        _tree(tmp_path, versions).operator("Blur")
    line = 5 if "step" in versions else 4
    assert caught.value.place.line == line
    assert "releases.yaml" in caught.value.remedy
