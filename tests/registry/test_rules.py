"""What refutes a step's claim, what settles it, which steps need none, and which verbs cannot be meant."""

from typing import Any, NamedTuple

import pytest

from opshift.registry.models import OperatorVersion
from opshift.registry.record import checked
from opshift.registry.rules import RULES, is_derivable, misused, refutations
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
    stated = {"domain": "com.acme", "name": "Blur", "since_version": since_version, **fields}
    return checked(OperatorVersion, stated)


def _attribute(**fields: Any) -> Fields:
    return {"attributes": {"mode": {"type": "INT", **fields}}}


def _inputs(*parameters: Fields) -> Fields:
    return {"inputs": parameters}


def _any_number(least: int) -> Fields:
    return _inputs({**X, "option": "variadic", "min_arity": least})


class Pair(NamedTuple):
    """What a rule is about, and two versions."""

    rule: str
    old: Fields
    new: Fields


BROKEN = {
    "the target lacks an attribute": Pair("attribute-removed", _attribute(), {}),
    "the attribute is of another type": Pair(
        "attribute-type-changed", _attribute(), _attribute(type="STRING")
    ),
    "the default is another": Pair("default-changed", _attribute(default=1), _attribute(default=-1)),
    "the default is gone": Pair("default-changed", _attribute(default=1), _attribute()),
    "an attribute comes that has to be there": Pair(
        "attribute-became-required", {}, _attribute(required=True)
    ),
    "an attribute has to be there now": Pair(
        "attribute-became-required", _attribute(), _attribute(required=True)
    ),
    "a value is gone": Pair("values-removed", _attribute(values=[0, 1]), _attribute(values=[0])),
    "a value is another": Pair("values-removed", _attribute(values=[0, 1]), _attribute(values=[0, 2])),
    "only some values are left of all": Pair("values-removed", _attribute(), _attribute(values=[0, 1])),
    "the target lacks an input": Pair("parameter-removed", _inputs(X, OPTIONAL_Y), _inputs(X)),
    "the target lacks an output": Pair("parameter-removed", {"outputs": [X, Y]}, {"outputs": [X]}),
    "an input comes that has to be there": Pair("parameter-became-required", _inputs(X), _inputs(X, Y)),
    "an input has to be there now": Pair("parameter-became-required", _inputs(X, OPTIONAL_Y), _inputs(X, Y)),
    "more values have to be there": Pair("parameter-became-required", _any_number(0), _any_number(1)),
    "the target is deprecated": Pair("operator-deprecated", {}, {"deprecation": {"replaced_by": "Sharpen"}}),
}

KEPT = {
    "the target has one attribute more": Pair("attribute-removed", {}, _attribute()),
    "only the default of the attribute is another": Pair(
        "attribute-type-changed", _attribute(), _attribute(default=1)
    ),
    "the default is what it was": Pair("default-changed", _attribute(default=1), _attribute(default=1)),
    "a default comes with its attribute": Pair("default-changed", {}, _attribute(default=1)),
    "an attribute comes that may be left out": Pair("attribute-became-required", {}, _attribute()),
    "an attribute need not be there now": Pair(
        "attribute-became-required", _attribute(required=True), _attribute()
    ),
    "a value joins": Pair("values-removed", _attribute(values=[0]), _attribute(values=[0, 1])),
    "all values become legal": Pair("values-removed", _attribute(values=[0, 1]), _attribute()),
    "the target has one output more": Pair("parameter-removed", {"outputs": [X]}, {"outputs": [X, Y]}),
    "an input has another name": Pair("parameter-removed", _inputs(X), _inputs(Y)),
    "an input comes that may be left out": Pair(
        "parameter-became-required", _inputs(X), _inputs(X, OPTIONAL_Y)
    ),
    "an input need not be there now": Pair(
        "parameter-became-required", _inputs(X, Y), _inputs(X, OPTIONAL_Y)
    ),
    "one value becomes any number": Pair("parameter-became-required", _inputs(X), _any_number(1)),
    "fewer values have to be there": Pair("parameter-became-required", _any_number(2), _any_number(1)),
    "the source is deprecated": Pair("operator-deprecated", {"deprecation": {}}, {}),
    "both are deprecated": Pair("operator-deprecated", {"deprecation": {}}, {"deprecation": {}}),
}


@pytest.mark.parametrize("pair", BROKEN.values(), ids=BROKEN)
def test_a_pair_breaks_one_rule(pair: Pair) -> None:
    (refutation,) = refutations(_version(1, pair.old), _version(2, pair.new))
    assert refutation.rule == pair.rule
    purpose = next(rule.purpose for rule in RULES if rule.id == pair.rule)
    assert refutation.reason.startswith(f"{purpose.removesuffix('.')} (")
    assert refutation.subject in refutation.reason


@pytest.mark.parametrize("pair", KEPT.values(), ids=KEPT)
def test_a_pair_keeps_the_rule_that_it_comes_close_to(pair: Pair) -> None:
    found = refutations(_version(1, pair.old), _version(2, pair.new))
    assert pair.rule not in [refutation.rule for refutation in found]


def test_every_rule_is_broken_by_one_pair_and_kept_by_another() -> None:
    rules = {rule.id for rule in RULES}
    assert {pair.rule for pair in BROKEN.values()} == rules
    assert {pair.rule for pair in KEPT.values()} == rules


def test_rules_are_named_once_and_say_their_purpose_in_a_sentence() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert [rule.id for rule in RULES if not rule.purpose.endswith(".") or rule.purpose.count(".") != 1] == []


# What settles a refutation

SETTLED: dict[str, tuple[Fields, Fields, AnyVerb]] = {
    "the attribute is dropped": (_attribute(default=1), {}, DropAttribute(attribute="mode")),
    "the attribute is ignored": (_attribute(), {}, IgnoreAttribute(attribute="mode")),
    "the attribute is added": ({}, _attribute(required=True), AddAttribute(attribute="mode", value=1)),
    "the old default is written": (
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
    "the attribute becomes an input of another name": (
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
    "another operator has its own definition": (
        _attribute(),
        {"deprecation": {}},
        RenameOp(op_type="Sharpen"),
    ),
}


@pytest.mark.parametrize(("old", "new", "verb"), SETTLED.values(), ids=SETTLED)
def test_a_verb_settles_what_it_takes_care_of(old: Fields, new: Fields, verb: AnyVerb) -> None:
    assert refutations(_version(1, old), _version(2, new))
    assert refutations(_version(1, old), _version(2, new), (verb,)) == ()


def test_every_verb_settles_something() -> None:
    assert {type(verb) for _, _, verb in SETTLED.values()} == set(VERBS.values())


def test_a_verb_settles_nothing_else() -> None:
    old = _version(1, {"attributes": {"a": INT, "b": INT}})
    left = refutations(old, _version(2, {}), (DropAttribute(attribute="a"),))
    assert [(refutation.rule, refutation.subject) for refutation in left] == [("attribute-removed", "b")]


# Which steps need no claim

T_FLOAT = {"type_constraints": {"T": ["tensor(float)"]}}
T_BOTH = {"type_constraints": {"T": ["tensor(double)", "tensor(float)"]}}
IN, OUT = {"inputs": [{"name": "X", "type": "T"}]}, {"outputs": [{"name": "Y", "type": "T"}]}
DERIVABLE: dict[str, tuple[Fields, Fields, bool]] = {
    "an input takes more types": ({**IN, **T_FLOAT}, {**IN, **T_BOTH}, True),
    "an output takes fewer types": ({**OUT, **T_BOTH}, {**OUT, **T_FLOAT}, True),
    "types change and a name": (
        {**IN, **T_FLOAT},
        {"inputs": [{"name": "input", "type": "T"}], **T_BOTH},
        True,
    ),
    "types change and an attribute comes": ({**IN, **T_FLOAT}, {**IN, **T_BOTH, **_attribute()}, False),
    "types change and an experiment ends": (
        {**IN, **T_FLOAT, "status": "EXPERIMENTAL"},
        {**IN, **T_BOTH},
        False,
    ),
    "only a name changes": (_inputs(X), _inputs(Y), False),
    "the definitions say the same, so a person has to say what changed": (_inputs(X), _inputs(X), False),
    "an attribute comes": ({}, _attribute(), False),
}


@pytest.mark.parametrize(("old", "new", "derivable"), DERIVABLE.values(), ids=DERIVABLE)
def test_a_step_is_derived_where_only_types_differ(old: Fields, new: Fields, derivable: bool) -> None:
    assert is_derivable(_version(1, old), _version(2, new)) is derivable


# Which verbs cannot be meant

MODES = _attribute(type="STRING", values=["bilinear", "nearest"])
NEW_MODES = _attribute(type="STRING", values=["linear", "nearest"])
M = {"name": "M", "type": "tensor(int64)"}
RENAMED = RenameValue(attribute="mode", values={"bilinear": "linear"})
NO_MODE = "com.acme.Blur:1 has no attribute 'mode'"
NO_NEW_MODE = "com.acme.Blur:2 has no attribute 'mode'"
USES: dict[str, tuple[AnyVerb, Fields, Fields, str | None]] = {
    "drop what is there": (DropAttribute(attribute="mode"), _attribute(), {}, None),
    "drop what is not there": (DropAttribute(attribute="mode"), {}, _attribute(), NO_MODE),
    "ignore what is there": (IgnoreAttribute(attribute="mode"), _attribute(), {}, None),
    "ignore what is not there": (IgnoreAttribute(attribute="mode"), {}, _attribute(), NO_MODE),
    "add what the target has": (AddAttribute(attribute="mode", value=1), {}, _attribute(), None),
    "add what the target lacks": (AddAttribute(attribute="mode", value=1), _attribute(), {}, NO_NEW_MODE),
    "rename what is there": (RenameAttribute(attribute="mode", to="method"), _attribute(), {}, None),
    "rename what is not there": (RenameAttribute(attribute="mode", to="method"), {}, {}, NO_MODE),
    "an attribute feeds an input": (
        AttributeToInput(attribute="mode", input="M"),
        _attribute(),
        _inputs(M),
        None,
    ),
    "an attribute that is not there feeds an input": (
        AttributeToInput(attribute="mode", input="M"),
        {},
        _inputs(M),
        NO_MODE,
    ),
    "an attribute feeds an input that is not there": (
        AttributeToInput(attribute="mode", input="M"),
        _attribute(),
        _inputs(X),
        "com.acme.Blur:2 has no input 'M'",
    ),
    "an attribute feeds the input of its name, which is not there": (
        AttributeToInput(attribute="mode"),
        _attribute(),
        _inputs(M),
        "com.acme.Blur:2 has no input 'mode'",
    ),
    "an input becomes an attribute": (
        InputToAttribute(input="M", attribute="mode"),
        _inputs(M),
        _attribute(),
        None,
    ),
    "an input that is not there becomes an attribute": (
        InputToAttribute(input="M", attribute="mode"),
        _inputs(X),
        _attribute(),
        "com.acme.Blur:1 has no input 'M'",
    ),
    "an input becomes an attribute that is not there": (
        InputToAttribute(input="M", attribute="mode"),
        _inputs(M),
        {},
        NO_NEW_MODE,
    ),
    "require what is there": (RequireAttribute(attribute="mode", value=1), _attribute(), {}, None),
    "require what is not there": (RequireAttribute(attribute="mode", value=1), {}, {}, NO_MODE),
    "rename a value": (RENAMED, MODES, NEW_MODES, None),
    "rename a value of an attribute that is not there": (
        RENAMED,
        {},
        NEW_MODES,
        "com.acme.Blur:1 has no list of allowed values for 'mode'",
    ),
    "rename a value that is not one of few": (
        RENAMED,
        _attribute(type="STRING"),
        NEW_MODES,
        "com.acme.Blur:1 has no list of allowed values for 'mode'",
    ),
    "rename a value to one that is not one of few": (
        RENAMED,
        MODES,
        _attribute(type="STRING"),
        "com.acme.Blur:2 has no list of allowed values for 'mode'",
    ),
    "rename a value that is not legal": (
        RENAMED,
        NEW_MODES,
        NEW_MODES,
        "com.acme.Blur:1 does not allow 'bilinear' for 'mode'",
    ),
    "rename a value to one that is not legal": (
        RENAMED,
        MODES,
        MODES,
        "com.acme.Blur:2 does not allow 'linear' for 'mode'",
    ),
    "an input that is there is not used": (RequireNoInput(input="Y"), _inputs(X, OPTIONAL_Y), {}, None),
    "an input that is not there is not used": (
        RequireNoInput(input="Y"),
        _inputs(X),
        {},
        "com.acme.Blur:1 has no input 'Y'",
    ),
    "an output that is there is not used": (
        RequireNoOutput(output="Y"),
        {"outputs": [X, OPTIONAL_Y]},
        {},
        None,
    ),
    "an output that is not there is not used": (
        RequireNoOutput(output="Y"),
        {"outputs": [X]},
        {},
        "com.acme.Blur:1 has no output 'Y'",
    ),
    "another operator, of which these definitions know nothing": (RenameOp(op_type="Sharpen"), {}, {}, None),
}


@pytest.mark.parametrize(("verb", "old", "new", "reason"), USES.values(), ids=USES)
def test_a_verb_needs_what_it_names(verb: AnyVerb, old: Fields, new: Fields, reason: str | None) -> None:
    assert misused(verb, _version(1, old), _version(2, new)) == reason


def test_every_verb_is_used_well_and_but_for_one_badly() -> None:
    used = {
        wrong: {type(row[0]) for row in USES.values() if bool(row[3]) is wrong} for wrong in (True, False)
    }
    assert used[False] == set(VERBS.values())
    assert used[True] == set(VERBS.values()) - {RenameOp}
