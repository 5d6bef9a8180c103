"""Rules that refute a declared step, verbs that resolve them, derivable steps, and invalid uses of verbs."""

from typing import Any, NamedTuple

import pytest

from opshift.registry.models import OperatorVersion
from opshift.registry.record import from_plain_data
from opshift.registry.step_rules import STEP_RULES, is_derivable, refutations, verb_problem
from opshift.registry.steps import (
    VERBS,
    AddAttribute,
    AnyVerb,
    AttributeToInput,
    DropAttribute,
    IgnoreAttribute,
    InputToAttribute,
    RenameAttribute,
    RenameOp,
    RenameValue,
    RequireAttribute,
    RequireNoInput,
    RequireNoOutput,
)

Fields = dict[str, Any]
X = {"name": "X", "type": "tensor(float)"}
Y = {"name": "Y", "type": "tensor(float)"}
OPTIONAL_Y = {**Y, "option": "optional"}
INT = {"type": "INT"}


def _version(since_version: int, fields: Fields) -> OperatorVersion:
    data = {"domain": "com.acme", "name": "Blur", "since_version": since_version, **fields}
    return from_plain_data(OperatorVersion, data)


def _attribute(**fields: Any) -> Fields:
    return {"attributes": {"mode": {"type": "INT", **fields}}}


def _inputs(*parameters: Fields) -> Fields:
    return {"inputs": parameters}


def _types(a: str, b: str) -> Fields:
    """Return inputs A and B with these types, of which T and U are type variables for two types."""
    variables = {name: ["tensor(float)", "tensor(int64)"] for name in ("T", "U") if name in (a, b)}
    return {**_inputs({"name": "A", "type": a}, {"name": "B", "type": b}), "type_constraints": variables}


def _output(**sources: Any) -> Fields:
    return {"outputs": [{**Y, **sources}], "attributes": {"to": INT, "dtype": INT}}


def _group(*names: str) -> Fields:
    return {"attributes": {"a": INT, "b": INT}, "one_of": [names] if names else []}


def _variadic(min_arity: int) -> Fields:
    return _inputs({**X, "option": "variadic", "min_arity": min_arity})


class Pair(NamedTuple):
    """The id of a rule, and the fields of two versions."""

    rule: str
    old: Fields
    new: Fields


VIOLATED = {
    "a removed attribute": Pair("attribute-removed", _attribute(), {}),
    "a changed attribute type": Pair("attribute-type-changed", _attribute(), _attribute(type="STRING")),
    "a changed default": Pair("default-changed", _attribute(default=1), _attribute(default=-1)),
    "a removed default": Pair("default-changed", _attribute(default=1), _attribute()),
    "an added required attribute": Pair("attribute-became-required", {}, _attribute(required=True)),
    "an attribute becomes required": Pair(
        "attribute-became-required", _attribute(), _attribute(required=True)
    ),
    "a removed value": Pair("values-removed", _attribute(values=[0, 1]), _attribute(values=[0])),
    "a replaced value": Pair("values-removed", _attribute(values=[0, 1]), _attribute(values=[0, 2])),
    "an added list of allowed values": Pair("values-removed", _attribute(), _attribute(values=[0, 1])),
    "a removed input": Pair("parameter-removed", _inputs(X, OPTIONAL_Y), _inputs(X)),
    "a removed output": Pair("parameter-removed", {"outputs": [X, Y]}, {"outputs": [X]}),
    "an added required input": Pair("parameter-became-required", _inputs(X), _inputs(X, Y)),
    "an input becomes required": Pair("parameter-became-required", _inputs(X, OPTIONAL_Y), _inputs(X, Y)),
    "a larger minimum number of values": Pair("parameter-became-required", _variadic(0), _variadic(1)),
    "a moved input": Pair("parameter-moved", _inputs(X, Y), _inputs(Y, {**Y, "name": "Z"})),
    "a moved output": Pair("parameter-moved", {"outputs": [X, Y]}, {"outputs": [Y, {**Y, "name": "Z"}]}),
    "merged type variables": Pair("types-merged", _types("T", "U"), _types("T", "T")),
    "a type and a type variable are merged": Pair(
        "types-merged", _types("T", "tensor(int64)"), _types("T", "T")
    ),
    "a removed type attribute": Pair("type-rule-changed", _output(type_attribute="to"), _output()),
    "another type attribute": Pair(
        "type-rule-changed", _output(type_attribute="to"), _output(type_attribute="dtype")
    ),
    "another type without the attribute": Pair(
        "type-rule-changed",
        _output(type_attribute="to", absent_type="tensor(float)"),
        _output(type_attribute="to", absent_type="tensor(double)"),
    ),
    "an added group": Pair("attribute-group-added", _group(), _group("a", "b")),
    "the new version is deprecated": Pair(
        "operator-deprecated", {}, {"deprecation": {"replaced_by": "Sharpen"}}
    ),
}

SATISFIED = {
    "an added attribute": Pair("attribute-removed", {}, _attribute()),
    "a changed default only": Pair("attribute-type-changed", _attribute(), _attribute(default=1)),
    "an unchanged default": Pair("default-changed", _attribute(default=1), _attribute(default=1)),
    "an added attribute with a default": Pair("default-changed", {}, _attribute(default=1)),
    "an added optional attribute": Pair("attribute-became-required", {}, _attribute()),
    "an attribute becomes optional": Pair(
        "attribute-became-required", _attribute(required=True), _attribute()
    ),
    "an added value": Pair("values-removed", _attribute(values=[0]), _attribute(values=[0, 1])),
    "a removed list of allowed values": Pair("values-removed", _attribute(values=[0, 1]), _attribute()),
    "an added output": Pair("parameter-removed", {"outputs": [X]}, {"outputs": [X, Y]}),
    "a renamed input": Pair("parameter-removed", _inputs(X), _inputs(Y)),
    "an added optional input": Pair("parameter-became-required", _inputs(X), _inputs(X, OPTIONAL_Y)),
    "an input becomes optional": Pair("parameter-became-required", _inputs(X, Y), _inputs(X, OPTIONAL_Y)),
    "an input becomes variadic": Pair("parameter-became-required", _inputs(X), _variadic(1)),
    "a smaller minimum number of values": Pair("parameter-became-required", _variadic(2), _variadic(1)),
    "renamed inputs": Pair("parameter-moved", _inputs(X, Y), _inputs({**X, "name": "A"}, {**Y, "name": "B"})),
    "an input is appended": Pair("parameter-moved", _inputs(X), _inputs(X, OPTIONAL_Y)),
    "split type variables": Pair("types-merged", _types("T", "T"), _types("T", "U")),
    "renamed type variables": Pair("types-merged", _types("T", "T"), _types("U", "U")),
    "merged type variables of one type": Pair(
        "types-merged", _types("tensor(float)", "tensor(float)"), _types("T", "T")
    ),
    "an added type attribute": Pair("type-rule-changed", _output(), _output(type_attribute="to")),
    "a renamed input that determines the type": Pair(
        "type-rule-changed",
        {**_inputs(X), **_output(type_attribute="to", absent_type="X")},
        {**_inputs({**X, "name": "Z"}), **_output(type_attribute="to", absent_type="Z")},
    ),
    "a removed group": Pair("attribute-group-added", _group("a", "b"), _group()),
    "an unchanged group": Pair("attribute-group-added", _group("a", "b"), _group("b", "a")),
    "a group of a required attribute and a new one": Pair(
        "attribute-group-added",
        {"attributes": {"a": {"type": "INT", "required": True}}},
        _group("a", "b"),
    ),
    "the old version is deprecated": Pair("operator-deprecated", {"deprecation": {}}, {}),
    "both versions are deprecated": Pair("operator-deprecated", {"deprecation": {}}, {"deprecation": {}}),
}


@pytest.mark.parametrize("pair", VIOLATED.values(), ids=VIOLATED)
def test_a_pair_violates_one_rule(pair: Pair) -> None:
    found = refutations(_version(1, pair.old), _version(2, pair.new))
    assert {refutation.rule for refutation in found} == {pair.rule}
    purpose = STEP_RULES[pair.rule]
    for refutation in found:
        assert refutation.reason.startswith(f"{purpose.removesuffix('.')} (")
        assert refutation.subject in refutation.reason


@pytest.mark.parametrize("pair", SATISFIED.values(), ids=SATISFIED)
def test_a_similar_pair_satisfies_the_rule(pair: Pair) -> None:
    found = refutations(_version(1, pair.old), _version(2, pair.new))
    assert pair.rule not in [refutation.rule for refutation in found]


def test_every_rule_has_a_violating_and_a_satisfying_pair() -> None:
    assert {pair.rule for pair in VIOLATED.values()} == STEP_RULES.keys()
    assert {pair.rule for pair in SATISFIED.values()} == STEP_RULES.keys()


def test_rules_have_one_sentence_of_purpose() -> None:
    assert [purpose for purpose in STEP_RULES.values() if purpose.find(".") != len(purpose) - 1] == []


# Verbs that resolve a refutation

RESOLVED: dict[str, tuple[Fields, Fields, AnyVerb]] = {
    "the attribute is dropped": (_attribute(default=1), {}, DropAttribute(attribute="mode")),
    "the attribute is ignored": (_attribute(), {}, IgnoreAttribute(attribute="mode")),
    "the attribute is added": ({}, _attribute(required=True), AddAttribute(attribute="mode", value=1)),
    "the old default is written explicitly": (
        _attribute(default=1),
        _attribute(default=-1),
        AddAttribute(attribute="mode", value=1),
    ),
    "the attribute is renamed": (
        _attribute(),
        {"attributes": {"method": {"type": "INT", "required": True}}},
        RenameAttribute(attribute="mode", to="method"),
    ),
    "the attribute becomes an input": (
        _attribute(),
        _inputs({"name": "mode", "type": "tensor(int64)"}),
        AttributeToInput(attribute="mode"),
    ),
    "the attribute becomes an input with a different name": (
        _attribute(),
        _inputs({"name": "M", "type": "tensor(int64)"}),
        AttributeToInput(attribute="mode", input="M"),
    ),
    "the input becomes an attribute": (
        _inputs({"name": "M", "type": "tensor(int64)"}),
        _attribute(required=True),
        InputToAttribute(input="M", attribute="mode"),
    ),
    "the value is required": (
        _attribute(values=[0, 1]),
        _attribute(values=[0]),
        RequireAttribute(attribute="mode", value=0),
    ),
    "the value is renamed": (
        _attribute(type="STRING", values=["bilinear"]),
        _attribute(type="STRING", values=["linear"]),
        RenameValue(attribute="mode", values={"bilinear": "linear"}),
    ),
    "the input is not used": (_inputs(X, OPTIONAL_Y), _inputs(X), RequireNoInput(input="Y")),
    "the output is not used": (
        {"outputs": [X, OPTIONAL_Y]},
        {"outputs": [X]},
        RequireNoOutput(output="Y"),
    ),
    "the operator is renamed": (
        _attribute(),
        {"deprecation": {}},
        RenameOp(op_type="Sharpen"),
    ),
}


@pytest.mark.parametrize(("old", "new", "verb"), RESOLVED.values(), ids=RESOLVED)
def test_a_verb_resolves_its_refutation(old: Fields, new: Fields, verb: AnyVerb) -> None:
    assert refutations(_version(1, old), _version(2, new))
    assert refutations(_version(1, old), _version(2, new), (verb,)) == ()


def test_every_verb_resolves_a_refutation() -> None:
    assert {type(verb) for _, _, verb in RESOLVED.values()} == set(VERBS.values())


def test_a_verb_leaves_other_refutations() -> None:
    old = _version(1, {"attributes": {"a": INT, "b": INT}})
    remaining = refutations(old, _version(2, {}), (DropAttribute(attribute="a"),))
    assert [(refutation.rule, refutation.subject) for refutation in remaining] == [("attribute-removed", "b")]


def test_the_target_must_have_a_renamed_attribute() -> None:
    versions = _version(1, _attribute()), _version(2, {"attributes": {"method": INT}})
    rename = RenameAttribute(attribute="mode", to="methd")
    (found,) = refutations(*versions, (rename,))
    assert (found.rule, found.subject) == ("attribute-removed", "methd")
    # After `rename_op`, the node belongs to another operator, which may have the attribute.
    assert refutations(*versions, (rename, RenameOp(op_type="Sharpen"))) == ()


# Steps that can be derived from the definitions

T_FLOAT = {"type_constraints": {"T": ["tensor(float)"]}}
T_BOTH = {"type_constraints": {"T": ["tensor(double)", "tensor(float)"]}}
IN, OUT = {"inputs": [{"name": "X", "type": "T"}]}, {"outputs": [{"name": "Y", "type": "T"}]}
BOTH = {"T": ["tensor(float)", "tensor(int64)"]}
T_MORE = {"type_constraints": {"T": ["tensor(double)", *BOTH["T"]]}}


def _ab(first: str, second: str, second_type: str = "T") -> Fields:
    return {**_inputs({"name": first, "type": "T"}, {"name": second, "type": second_type}), **OUT}


def _body(op_type: str, *inputs: str) -> Fields:
    node = {"op_type": op_type, "inputs": inputs, "outputs": ["Y"]}
    return {"body": {"opset_imports": {"ai.onnx": 14}, "nodes": [node]}}


DERIVABLE: dict[str, tuple[Fields, Fields, bool]] = {
    "an added input type": ({**IN, **T_FLOAT}, {**IN, **T_BOTH}, True),
    "a removed output type": ({**OUT, **T_BOTH}, {**OUT, **T_FLOAT}, True),
    "changed types and a renamed input": (
        {**IN, **T_FLOAT},
        {"inputs": [{"name": "input", "type": "T"}], **T_BOTH},
        True,
    ),
    "changed types and an added attribute": ({**IN, **T_FLOAT}, {**IN, **T_BOTH, **_attribute()}, False),
    "changed types and a changed status": (
        {**IN, **T_FLOAT, "status": "EXPERIMENTAL"},
        {**IN, **T_BOTH},
        False,
    ),
    "a renamed input only": (_inputs(X), _inputs(Y), False),
    "equal definitions, which need a declared step": (_inputs(X), _inputs(X), False),
    "an added attribute only": ({}, _attribute(), False),
    "changed types and swapped inputs": (
        {**_ab("A", "B"), **T_FLOAT},
        {**_ab("B", "A"), **T_BOTH},
        False,
    ),
    "changed types and a changed body": (
        {**_ab("A", "B"), **_body("Sub", "A", "B"), **T_FLOAT},
        {**_ab("A", "B"), **_body("Add", "A", "B"), **T_BOTH},
        False,
    ),
    "changed types and swapped inputs of the body": (
        {**_ab("A", "B"), **_body("Sub", "A", "B"), **T_FLOAT},
        {**_ab("A", "B"), **_body("Sub", "B", "A"), **T_BOTH},
        False,
    ),
    "changed types and renamed inputs, also in the body": (
        {**_ab("A", "B"), **_body("Sub", "A", "B"), **T_FLOAT},
        {**_ab("C", "D"), **_body("Sub", "C", "D"), **T_BOTH},
        True,
    ),
    "changed types and an added body": (
        {**_ab("A", "B"), **T_FLOAT},
        {**_ab("A", "B"), **_body("Sub", "A", "B"), **T_BOTH},
        True,
    ),
    "changed types and merged type variables": (
        {**_ab("A", "B", "U"), "type_constraints": {**BOTH, "U": BOTH["T"]}},
        {**_ab("A", "B"), **T_MORE},
        False,
    ),
    "changed types and split type variables": (
        {**_ab("A", "B"), "type_constraints": BOTH},
        {**_ab("A", "B", "U"), "type_constraints": {**T_MORE["type_constraints"], "U": BOTH["T"]}},
        True,
    ),
    "changed types and a recorded requirement": (
        {**IN, **T_FLOAT},
        {**IN, **T_BOTH, "requires": ["rank(X) >= 3"]},
        True,
    ),
    "changed types and a changed shape rule": (
        {**IN, **T_FLOAT, "shape": "first"},
        {**IN, **T_BOTH, "shape": "same_as_first"},
        False,
    ),
    "changed types and a type attribute": (
        {**OUT, **_attribute(), **T_FLOAT},
        {"outputs": [{**OUT["outputs"][0], "type_attribute": "mode"}], **_attribute(), **T_BOTH},
        False,
    ),
    "changed types and an added group": (
        {**IN, **T_FLOAT, **_group()},
        {**IN, **T_BOTH, **_group("a", "b")},
        False,
    ),
}


@pytest.mark.parametrize(("old", "new", "derivable"), DERIVABLE.values(), ids=DERIVABLE)
def test_a_step_is_derivable_if_only_types_differ(old: Fields, new: Fields, derivable: bool) -> None:
    assert is_derivable(_version(1, old), _version(2, new)) is derivable


# Valid and invalid uses of verbs

MODES = _attribute(type="STRING", values=["bilinear", "nearest"])
NEW_MODES = _attribute(type="STRING", values=["linear", "nearest"])
M = {"name": "M", "type": "tensor(int64)"}
RENAMED = RenameValue(attribute="mode", values={"bilinear": "linear"})
NO_MODE = "com.acme.Blur:1 has no attribute 'mode'"
NO_NEW_MODE = "com.acme.Blur:2 has no attribute 'mode'"
USES: dict[str, tuple[AnyVerb, Fields, Fields, str | None]] = {
    "drop an attribute": (DropAttribute(attribute="mode"), _attribute(), {}, None),
    "drop an unknown attribute": (DropAttribute(attribute="mode"), {}, _attribute(), NO_MODE),
    "ignore an attribute": (IgnoreAttribute(attribute="mode"), _attribute(), {}, None),
    "ignore an unknown attribute": (IgnoreAttribute(attribute="mode"), {}, _attribute(), NO_MODE),
    "add an attribute of the new version": (AddAttribute(attribute="mode", value=1), {}, _attribute(), None),
    "add an attribute that the new version lacks": (
        AddAttribute(attribute="mode", value=1),
        _attribute(),
        {},
        NO_NEW_MODE,
    ),
    "rename an attribute": (RenameAttribute(attribute="mode", to="method"), _attribute(), {}, None),
    "rename an unknown attribute": (RenameAttribute(attribute="mode", to="method"), {}, {}, NO_MODE),
    "move an attribute to an input": (
        AttributeToInput(attribute="mode", input="M"),
        _attribute(),
        _inputs(M),
        None,
    ),
    "move an unknown attribute to an input": (
        AttributeToInput(attribute="mode", input="M"),
        {},
        _inputs(M),
        NO_MODE,
    ),
    "move an attribute to an unknown input": (
        AttributeToInput(attribute="mode", input="M"),
        _attribute(),
        _inputs(X),
        "com.acme.Blur:2 has no input 'M'",
    ),
    "move an attribute to an unknown input of the same name": (
        AttributeToInput(attribute="mode"),
        _attribute(),
        _inputs(M),
        "com.acme.Blur:2 has no input 'mode'",
    ),
    "move an input to an attribute": (
        InputToAttribute(input="M", attribute="mode"),
        _inputs(M),
        _attribute(),
        None,
    ),
    "move an unknown input to an attribute": (
        InputToAttribute(input="M", attribute="mode"),
        _inputs(X),
        _attribute(),
        "com.acme.Blur:1 has no input 'M'",
    ),
    "move an input to an unknown attribute": (
        InputToAttribute(input="M", attribute="mode"),
        _inputs(M),
        {},
        NO_NEW_MODE,
    ),
    "require a value of an attribute": (RequireAttribute(attribute="mode", value=1), _attribute(), {}, None),
    "require a value of an unknown attribute": (RequireAttribute(attribute="mode", value=1), {}, {}, NO_MODE),
    "rename a value": (RENAMED, MODES, NEW_MODES, None),
    "rename a value of an unknown attribute": (
        RENAMED,
        {},
        NEW_MODES,
        "com.acme.Blur:1 has no list of allowed values for 'mode'",
    ),
    "rename a value of an attribute without listed values": (
        RENAMED,
        _attribute(type="STRING"),
        NEW_MODES,
        "com.acme.Blur:1 has no list of allowed values for 'mode'",
    ),
    "rename a value of an attribute without new listed values": (
        RENAMED,
        MODES,
        _attribute(type="STRING"),
        "com.acme.Blur:2 has no list of allowed values for 'mode'",
    ),
    "rename an illegal value": (
        RENAMED,
        NEW_MODES,
        NEW_MODES,
        "com.acme.Blur:1 does not allow 'bilinear' for 'mode'",
    ),
    "rename a value to an illegal one": (
        RENAMED,
        MODES,
        MODES,
        "com.acme.Blur:2 does not allow 'linear' for 'mode'",
    ),
    "require that an input is unused": (RequireNoInput(input="Y"), _inputs(X, OPTIONAL_Y), {}, None),
    "require that an unknown input is unused": (
        RequireNoInput(input="Y"),
        _inputs(X),
        {},
        "com.acme.Blur:1 has no input 'Y'",
    ),
    "require that an output is unused": (
        RequireNoOutput(output="Y"),
        {"outputs": [X, OPTIONAL_Y]},
        {},
        None,
    ),
    "require that an unknown output is unused": (
        RequireNoOutput(output="Y"),
        {"outputs": [X]},
        {},
        "com.acme.Blur:1 has no output 'Y'",
    ),
    "rename the operator to an unknown one": (RenameOp(op_type="Sharpen"), {}, {}, None),
}


@pytest.mark.parametrize(("verb", "old", "new", "reason"), USES.values(), ids=USES)
def test_a_verb_must_name_existing_parts(verb: AnyVerb, old: Fields, new: Fields, reason: str | None) -> None:
    assert verb_problem(verb, _version(1, old), _version(2, new)) == reason


def test_every_verb_has_a_valid_use_and_all_but_rename_op_an_invalid_one() -> None:
    used = {
        is_invalid: {type(row[0]) for row in USES.values() if bool(row[3]) is is_invalid}
        for is_invalid in (True, False)
    }
    assert used[False] == set(VERBS.values())
    assert used[True] == set(VERBS.values()) - {RenameOp}
