"""Classification of changes: every rule has a pair that triggers it and a similar pair that does not."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from opshift.registry.changes.classes import BACKWARD, CHANGE_RULES, FORWARD, MEANINGS, ChangeClass
from opshift.registry.changes.classify import (
    RULE_SELECTION,
    changes_between,
    classify,
    classify_single,
    most_severe_class,
)
from opshift.registry.changes.diff import Change
from opshift.registry.changes.history import HistoryStep, history_steps
from opshift.registry.descriptions import set_texts
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import from_plain_data
from opshift.registry.registry import default_registry

Fields = dict[str, Any]
X = {"name": "X", "type": "tensor(float)"}
Y = {"name": "Y", "type": "tensor(float)"}
OPTIONAL_Y = {**Y, "option": "optional"}
MODE = {"name": "mode", "type": "tensor(int64)", "option": "optional"}
ADAPTERS = {"up": "adapter", "down": "adapter"}
COMPATIBLE = {"up": "compatible", "down": "compatible"}
REFUSED = {"refuse": "there is no direction to say that"}


def _version(since_version: int, fields: Fields) -> OperatorVersion:
    definition = {key: value for key, value in fields.items() if key != "texts"}
    data = {"domain": "com.acme", "name": "Blur", "since_version": since_version, **definition}
    version = from_plain_data(OperatorVersion, data)
    if "texts" in fields:
        set_texts(version, fields["texts"])
    return version


def _attribute(name: str = "mode", **fields: Any) -> Fields:
    return {"attributes": {name: {"type": "INT", **fields}}}


def _inputs(*parameters: Fields) -> Fields:
    return {"inputs": parameters}


def _outputs(*parameters: Fields) -> Fields:
    return {"outputs": parameters}


def _step(up: object, down: object = None) -> Fields:
    return {"step": {"up": up, "down": down}}


def _body(op_type: str) -> Fields:
    return {"body": {"opset_imports": {"ai.onnx": 1}, "nodes": [{"op_type": op_type, "outputs": ["Y"]}]}}


def _type(*types: str) -> Fields:
    return {**_inputs({"name": "X", "type": "T"}), "type_constraints": {"T": types}}


def _two_types(second: str, *types: str) -> Fields:
    """Return inputs of type T and of a second type, with equal types for all type variables."""
    return {
        **_inputs({"name": "A", "type": "T"}, {"name": "B", "type": second}),
        "type_constraints": dict.fromkeys({"T", second}, types or ("tensor(float)", "tensor(int64)")),
    }


def _group(*names: str) -> Fields:
    return {"attributes": {"a": {"type": "INT"}, "b": {"type": "INT"}}, "one_of": [names] if names else []}


class Pair(NamedTuple):
    """The id of a rule, and the fields of two versions that trigger it or are similar."""

    rule: str
    old: Fields
    new: Fields
    is_edit: bool = False
    """Whether both are the same version in two trees."""


TRIGGERED = {
    "an attribute becomes an input": Pair("attribute-became-input", _attribute(), _inputs(X, MODE)),
    "an attribute becomes an additional input": Pair(
        "attribute-became-input", {**_attribute(), **_inputs(X)}, _inputs(X, MODE)
    ),
    "an attribute becomes an input with a different name": Pair(
        "attribute-became-input",
        _attribute(),
        {
            **_inputs({"name": "how", "type": "tensor(int64)"}),
            **_step([{"attribute_to_input": {"attribute": "mode", "input": "how"}}]),
        },
    ),
    "a removed attribute without effect": Pair(
        "attribute-without-effect-removed", _attribute(), _step([{"ignore_attribute": "mode"}])
    ),
    "a renamed attribute": Pair(
        "attribute-renamed",
        _attribute(),
        {**_attribute("how"), **_step([{"rename_attribute": {"attribute": "mode", "to": "how"}}])},
    ),
    "an attribute replaced by adapters": Pair(
        "attributes-replaced", _attribute(), {**_attribute("how"), "step": ADAPTERS}
    ),
    "a removed attribute": Pair("attribute-removed", _attribute(), {}),
    "an input becomes an attribute": Pair(
        "input-became-attribute", _inputs(X, MODE), {**_inputs(X), **_attribute()}
    ),
    "a required attribute added by the step": Pair(
        "required-attribute-supplied",
        {},
        {
            **_attribute(required=True),
            **_step([{"add_attribute": {"attribute": "mode", "value": 1}}]),
        },
    ),
    "an added required attribute": Pair("required-attribute-added", {}, _attribute(required=True)),
    "an added attribute": Pair("attribute-added", {}, _attribute(default=1)),
    "an attribute type converted by adapters": Pair(
        "attribute-retyped", _attribute(), {**_attribute(type="STRING"), "step": ADAPTERS}
    ),
    "a changed attribute type": Pair("attribute-type-changed", _attribute(), _attribute(type="STRING")),
    "a changed default": Pair("default-changed", _attribute(default=1), _attribute(default=2)),
    "an added default": Pair("default-changed", _attribute(), _attribute(default=2)),
    "an attribute becomes required": Pair(
        "attribute-became-required", _attribute(), _attribute(required=True)
    ),
    "an attribute becomes optional": Pair(
        "attribute-became-optional", _attribute(required=True), _attribute()
    ),
    "a renamed value": Pair(
        "values-renamed",
        _attribute(type="STRING", values=["bilinear"]),
        {
            **_attribute(type="STRING", values=["linear"]),
            **_step([{"rename_value": {"attribute": "mode", "values": {"bilinear": "linear"}}}]),
        },
    ),
    "a removed value": Pair("values-removed", _attribute(values=[0, 1]), _attribute(values=[0])),
    "a tighter bound": Pair("values-removed", _attribute(minimum=0), _attribute(minimum=1)),
    "an added value": Pair("values-added", _attribute(values=[0]), _attribute(values=[0, 1])),
    "an input inserted by adapters": Pair(
        "parameters-rearranged",
        _inputs(X, Y),
        {**_inputs(X, OPTIONAL_Y | {"name": "Z"}, Y), "step": ADAPTERS},
    ),
    "a required input removed by adapters": Pair(
        "parameters-rearranged", _inputs(X, Y), {**_inputs(X), "step": ADAPTERS}
    ),
    "a required input added by adapters": Pair(
        "required-input-supplied", _inputs(X), {**_inputs(X, Y), "step": ADAPTERS}
    ),
    "an added required input": Pair("required-input-added", _inputs(X), _inputs(X, Y)),
    "an added input": Pair("input-added", _inputs(X), _inputs(X, OPTIONAL_Y)),
    "a removed required input": Pair("required-input-removed", _inputs(X, Y), _inputs(X)),
    "a removed input": Pair("input-removed", _inputs(X, OPTIONAL_Y), _inputs(X)),
    "an added required output": Pair("required-output-added", _outputs(X), _outputs(X, Y)),
    "an added output": Pair("output-added", _outputs(X), _outputs(X, OPTIONAL_Y)),
    "a removed required output": Pair("required-output-removed", _outputs(X, Y), _outputs(X)),
    "a removed output": Pair("output-removed", _outputs(X, OPTIONAL_Y), _outputs(X)),
    "swapped inputs": Pair("parameters-reordered", _inputs(X, Y), _inputs(Y, X)),
    "swapped outputs": Pair("parameters-reordered", _outputs(X, Y), _outputs(Y, X)),
    "a renamed input": Pair("parameter-renamed", _inputs(X), _inputs({**X, "name": "input"})),
    "an input becomes required": Pair("parameter-demands-more", _inputs(X, OPTIONAL_Y), _inputs(X, Y)),
    "an output becomes required": Pair("parameter-demands-more", _outputs(X, OPTIONAL_Y), _outputs(X, Y)),
    "an input becomes optional": Pair("parameter-demands-less", _inputs(X, Y), _inputs(X, OPTIONAL_Y)),
    "an added type": Pair("types-added", _type("tensor(float)"), _type("tensor(double)", "tensor(float)")),
    "a removed type": Pair("types-removed", _type("tensor(double)", "tensor(float)"), _type("tensor(float)")),
    "a replaced type": Pair("types-removed", _type("tensor(double)"), _type("tensor(float)")),
    "merged type variables": Pair("type-variables-merged", _two_types("U"), _two_types("T"), True),
    "split type variables": Pair("type-variables-split", _two_types("T"), _two_types("U"), True),
    "an added group": Pair("attribute-group-added", _group(), _group("a", "b"), True),
    "a removed group": Pair("attribute-group-removed", _group("a", "b"), _group(), True),
    "a declared determinism": Pair("determinism-stated", {"determinism": "unknown"}, {}),
    "a changed determinism": Pair("determinism-changed", {}, {"determinism": "non_deterministic"}),
    "an operator becomes stable": Pair("experiment-ended", {"status": "EXPERIMENTAL"}, {}),
    "an operator becomes experimental": Pair("stability-lost", {}, {"status": "EXPERIMENTAL"}),
    "an operator becomes deprecated": Pair(
        "operator-deprecated", {}, {"deprecation": {"replaced_by": "Sharpen"}}
    ),
    "an operator is no longer deprecated": Pair("operator-restored", {"deprecation": {}}, {}),
    "an added removal": Pair("operator-removed", {}, {"removal": {"removed_in": 9, "up": "adapter"}}, True),
    "a withdrawn removal": Pair(
        "removal-withdrawn", {"removal": {"removed_in": 9, "up": "adapter"}}, {}, True
    ),
    "an added type attribute": Pair(
        "type-rule-added",
        _outputs(X) | _attribute(),
        _outputs({**X, "type_attribute": "mode"}) | _attribute(),
    ),
    "a changed type attribute": Pair(
        "type-rule-changed",
        _outputs({**X, "type_attribute": "mode"}),
        _outputs({**X, "type_attribute": "how"}),
    ),
    "an added list attribute": Pair(
        "type-rule-added",
        _outputs({**X, "element_attributes": ["sizes"]}) | _attribute(),
        _outputs({**X, "element_attributes": ["sizes"], "type_attribute": "mode"}) | _attribute(),
    ),
    "a rewritten body with a compatible step": Pair(
        "body-rewritten", _body("Relu"), {**_body("Clip"), "step": COMPATIBLE}
    ),
    "an added body": Pair("body-added", {}, _body("Relu")),
    "a removed body": Pair("body-removed", _body("Relu"), {}),
    "a changed body": Pair("body-changed", _body("Relu"), _body("Clip")),
    "a changed description": Pair("description-changed", {"texts": ["a"]}, {"texts": ["b"]}, True),
    "a changed text of an input": Pair(
        "description-changed",
        {**_inputs(X), "texts": ["a", "b"]},
        {**_inputs(X), "texts": ["a", "c"]},
        True,
    ),
    "a changed description of an absent attribute": Pair(
        "description-changed", _attribute(absent="none"), _attribute(absent="nothing")
    ),
    "a changed shape rule": Pair("facts-changed", {"shape": "first"}, {"shape": "same_as_first"}),
    "a recorded requirement": Pair(
        "facts-changed", _inputs(X), {**_inputs(X), "requires": ["rank(X) >= 3"]}, True
    ),
    "a declared differentiability": Pair(
        "facts-changed", _inputs(X), _inputs({**X, "differentiation": "differentiable"})
    ),
    "a changed step": Pair("conversion-changed", {"step": ADAPTERS}, {"step": COMPATIBLE}, True),
    "an added answer for earlier opsets": Pair("conversion-changed", {}, {"before": "adapter"}, True),
    "both directions are refused": Pair("meaning-changed", {}, _step(REFUSED, REFUSED)),
    "the upgrade is refused": Pair("behaviour-removed", {}, _step(REFUSED, "compatible")),
    "both directions need an adapter": Pair("meaning-re-encoded", {}, {"step": ADAPTERS}),
    "only the downgrade needs an adapter": Pair("behaviour-added", {}, _step("compatible", "adapter")),
    "only the downgrade is refused": Pair("behaviour-added", {}, _step("compatible", REFUSED)),
    "both directions are compatible": Pair("text-clarified", {}, {"step": COMPATIBLE}),
}

SIMILAR = {
    "attribute-became-input": Pair("attribute-removed", _attribute(), {**_inputs(), "step": ADAPTERS}),
    "attribute-without-effect-removed": Pair(
        "attribute-removed", _attribute(), _step([{"drop_attribute": "mode"}])
    ),
    "attribute-renamed": Pair("attribute-removed", _attribute(), _attribute("how")),
    "attributes-replaced": Pair("attribute-removed", _attribute(), {**_attribute("how"), "step": COMPATIBLE}),
    "attribute-removed": Pair("attribute-became-input", _attribute("k"), _inputs({**X, "name": "K"})),
    "input-became-attribute": Pair("input-removed", _inputs(X, OPTIONAL_Y), {**_inputs(X), **_attribute()}),
    "required-attribute-supplied": Pair(
        "required-attribute-added", {}, {**_attribute(required=True), "step": COMPATIBLE}
    ),
    "required-attribute-added": Pair("attribute-added", {}, _attribute()),
    "attribute-added": Pair("required-attribute-added", {}, _attribute(required=True)),
    "attribute-retyped": Pair(
        "attribute-type-changed", _attribute(), {**_attribute(type="STRING"), **_step("adapter", REFUSED)}
    ),
    "attribute-type-changed": Pair("default-changed", _attribute(default=1), _attribute(default=2)),
    "default-changed": Pair("attribute-added", {}, _attribute(default=2)),
    "attribute-became-required": Pair("attribute-became-optional", _attribute(required=True), _attribute()),
    "attribute-became-optional": Pair("attribute-became-required", _attribute(), _attribute(required=True)),
    "values-renamed": Pair("values-removed", _attribute(values=[0]), _attribute(values=[1])),
    "values-removed": Pair("values-added", _attribute(minimum=1), _attribute(minimum=0)),
    "values-added": Pair("values-removed", _attribute(values=[0, 1]), _attribute(values=[1, 2])),
    "parameters-rearranged": Pair(
        "parameters-reordered", _inputs(X, Y), {**_inputs(Y, X), "step": COMPATIBLE}
    ),
    "required-input-supplied": Pair(
        "required-input-added", _inputs(X), {**_inputs(X, Y), "step": COMPATIBLE}
    ),
    "required-input-added": Pair("input-added", _inputs(X), _inputs(X, OPTIONAL_Y)),
    "input-added": Pair("required-input-added", _inputs(X), _inputs(X, Y)),
    "required-input-removed": Pair("input-removed", _inputs(X, OPTIONAL_Y), _inputs(X)),
    "input-removed": Pair("required-input-removed", _inputs(X, Y), _inputs(X)),
    "required-output-added": Pair("output-added", _outputs(X), _outputs(X, OPTIONAL_Y)),
    "output-added": Pair("required-output-added", _outputs(X), _outputs(X, Y)),
    "required-output-removed": Pair("output-removed", _outputs(X, OPTIONAL_Y), _outputs(X)),
    "output-removed": Pair("required-output-removed", _outputs(X, Y), _outputs(X)),
    "parameters-reordered": Pair("parameter-renamed", _inputs(X, Y), _inputs(X, {**Y, "name": "Z"})),
    "parameter-renamed": Pair("parameters-reordered", _inputs(X, Y), _inputs(Y, X)),
    "parameter-demands-more": Pair("parameter-demands-less", _inputs(X, Y), _inputs(X, OPTIONAL_Y)),
    "parameter-demands-less": Pair("parameter-demands-more", _inputs(X, OPTIONAL_Y), _inputs(X, Y)),
    "types-added": Pair("types-removed", _type("tensor(double)"), _type("tensor(float)")),
    "types-removed": Pair("types-added", _type("tensor(float)"), _type("tensor(double)", "tensor(float)")),
    "type-variables-merged": Pair(
        "facts-changed", _two_types("U", "tensor(float)"), _two_types("T", "tensor(float)")
    ),
    "type-variables-split": Pair("type-variables-merged", _two_types("U"), _two_types("T")),
    "attribute-group-added": Pair("meaning-re-encoded", _group(), {**_group("a", "b"), "step": ADAPTERS}),
    "attribute-group-removed": Pair("facts-changed", _group("a", "b"), _group("b", "a")),
    "determinism-stated": Pair("determinism-changed", {}, {"determinism": "non_deterministic"}),
    "determinism-changed": Pair("determinism-stated", {}, {"determinism": "unknown"}),
    "experiment-ended": Pair("stability-lost", {}, {"status": "EXPERIMENTAL"}),
    "stability-lost": Pair("experiment-ended", {"status": "EXPERIMENTAL"}, {}),
    "operator-deprecated": Pair(
        "description-changed", {"deprecation": {}}, {"deprecation": {"replaced_by": "Sharpen"}}
    ),
    "operator-restored": Pair("operator-deprecated", {}, {"deprecation": {}}),
    "operator-removed": Pair("removal-withdrawn", {"removal": {"removed_in": 9, "up": "adapter"}}, {}, True),
    "removal-withdrawn": Pair(
        "operator-removed",
        {"removal": {"removed_in": 9, "up": "adapter"}},
        {"removal": {"removed_in": 8, "up": "adapter"}},
        True,
    ),
    "type-rule-added": Pair(
        "type-rule-changed",
        _outputs({**X, "type_attribute": "mode"}),
        _outputs({**X, "type_attribute": "mode", "absent_type": "tensor(float)"}),
    ),
    "type-rule-changed": Pair("type-rule-added", _outputs(X), _outputs({**X, "type_attribute": "mode"})),
    "body-rewritten": Pair("body-changed", _body("Relu"), {**_body("Clip"), "step": ADAPTERS}),
    "body-added": Pair("body-removed", _body("Relu"), {}),
    "body-removed": Pair("body-added", {}, _body("Relu")),
    "body-changed": Pair("body-rewritten", _body("Relu"), {**_body("Clip"), "step": COMPATIBLE}),
    "description-changed": Pair("facts-changed", {"shape": "first"}, {}),
    "facts-changed": Pair("description-changed", {"texts": ["a"]}, {}, True),
    "conversion-changed": Pair("meaning-re-encoded", {}, {"step": ADAPTERS}),
    "meaning-changed": Pair("behaviour-removed", {}, _step(REFUSED, "adapter")),
    "behaviour-removed": Pair("meaning-changed", {}, _step(REFUSED, REFUSED)),
    "meaning-re-encoded": Pair("behaviour-added", {}, _step("compatible", "adapter")),
    "behaviour-added": Pair("text-clarified", {}, _step("compatible")),
    "text-clarified": Pair("behaviour-added", {}, _step("compatible", "adapter")),
}
SINGLE_DEFINITION = {"version-deleted", "version-inserted", "operator-added"}
"""Rules for versions and operators that exist in one tree only."""


def _rules(pair: Pair) -> set[str]:
    return {
        each.rule for each in classify(_version(1, pair.old), _version(1 if pair.is_edit else 2, pair.new))
    }


@pytest.mark.parametrize("pair", TRIGGERED.values(), ids=TRIGGERED)
def test_a_pair_triggers_its_rule(pair: Pair) -> None:
    assert pair.rule in _rules(pair)


@pytest.mark.parametrize(("rule", "pair"), SIMILAR.items(), ids=SIMILAR)
def test_a_similar_pair_triggers_a_different_rule(rule: str, pair: Pair) -> None:
    found = _rules(pair)
    assert rule not in found
    assert pair.rule in found


def test_every_rule_has_a_triggering_and_a_similar_pair() -> None:
    assert {pair.rule for pair in TRIGGERED.values()} == CHANGE_RULES.keys() - SINGLE_DEFINITION
    assert SIMILAR.keys() == CHANGE_RULES.keys() - SINGLE_DEFINITION


@pytest.mark.parametrize("rule", sorted(SINGLE_DEFINITION))
def test_classifies_added_and_deleted_versions_and_operators(rule: str) -> None:
    change = Change(rule.replace("-", "_"), "Blur", None, 2)
    assert classify_single(change, _version(2, {})).rule == rule


def test_rules_have_one_short_sentence_of_purpose() -> None:
    assert [
        rule.id for rule in CHANGE_RULES.values() if not rule.purpose.endswith(".") or len(rule.purpose) > 110
    ] == []


def test_kinds_without_conditions_name_existing_rules() -> None:
    named = {selected for selected in RULE_SELECTION.values() if isinstance(selected, str)}
    assert named <= CHANGE_RULES.keys()


def test_every_class_has_a_meaning_and_a_rule() -> None:
    assert set(MEANINGS) == set(ChangeClass) == {rule.change_class for rule in CHANGE_RULES.values()}


def test_the_most_severe_class_determines_the_result() -> None:
    assert most_severe_class([]) is ChangeClass.DOCUMENTATION
    added, removed = Change("input_types", "X", set(), {"int8"}), Change("removal", "Blur", None, 2)
    both = [classify_single(each, _version(1, {})) for each in (removed, added)]
    assert [each.change_class for each in both] == [ChangeClass.REMOVAL, ChangeClass.WIDENING]
    assert most_severe_class(both) is ChangeClass.REMOVAL
    changes = classify(
        _version(1, _attribute(default=1)), _version(2, {**_attribute(default=2), "shape": "first"})
    )
    assert most_severe_class(changes) is ChangeClass.CHANGES_DEFAULT


def test_equal_definitions_have_no_changes() -> None:
    assert classify(_version(1, _attribute()), _version(1, _attribute())) == ()


def test_converts_a_change_to_plain_data() -> None:
    (change,) = classify(_version(1, _attribute(default=1)), _version(2, _attribute(default=2)))
    assert change.as_dict() == {
        "rule": "default-changed",
        "class": "changes-default",
        "subject": "mode",
        "change": "attribute default: mode: 1 -> 2",
        "purpose": "The meaning of a node without the attribute changed.",
    }


# Changes across several versions

THREE_VERSIONS = Operator(
    domain="com.acme",
    name="Blur",
    versions=(
        _version(1, _attribute(default=1)),
        _version(3, {**_attribute(default=2), "step": ADAPTERS}),
        _version(5, {**_attribute(default=1), **_step("adapter", "adapter")}),
    ),
)


@pytest.mark.parametrize(
    ("start", "target", "rules"),
    [
        pytest.param(1, 3, ["meaning-re-encoded"], id="next version"),
        pytest.param(1, 5, [], id="changed and restored"),
        pytest.param(5, 1, [], id="changed and restored downwards"),
        pytest.param(3, 1, ["meaning-re-encoded"], id="previous version"),
        pytest.param(3, 3, [], id="same version"),
    ],
)
def test_lists_changes_between_any_two_versions(start: int, target: int, rules: list[str]) -> None:
    assert [each.rule for each in changes_between(THREE_VERSIONS, start, target)] == rules


def test_keeps_the_class_of_a_step_across_several_versions() -> None:
    versions = (_version(1, {}), _version(2, {"step": ADAPTERS}), _version(3, {"step": COMPATIBLE}))
    operator = Operator(domain="com.acme", name="Blur", versions=versions)
    assert [each.rule for each in changes_between(operator, 1, 3)] == ["meaning-re-encoded"]


def test_refuses_an_unknown_version() -> None:
    with pytest.raises(KeyError):
        changes_between(THREE_VERSIONS, 1, 2)


# History of ONNX

STEPS = [step for step in history_steps(default_registry().operators()) if step.new]


def test_every_kind_of_change_has_a_rule() -> None:
    kinds = {each.change.kind for step in STEPS for each in step.changes}
    assert kinds <= RULE_SELECTION.keys()
    assert len(STEPS) >= 432


def _all_in(step: HistoryStep, classes: frozenset[ChangeClass]) -> bool:
    return all(each.change_class in classes for each in step.changes)


def _action(step: HistoryStep, direction: str) -> object:
    assert step.new is not None
    return getattr(step.new.step, direction, None)


def test_backward_compatible_steps_need_no_upgrade() -> None:
    """Changes are backward compatible exactly if the step needs no rewriting; removed types are exempt."""
    mismatches = [
        step.operator
        for step in STEPS
        if _all_in(step, BACKWARD) != (_action(step, "up") in (None, "compatible"))
        and "types-removed" not in {each.rule for each in step.changes}
    ]
    assert mismatches == []


def test_forward_compatible_steps_need_no_downgrade() -> None:
    mismatches = [
        step.operator
        for step in STEPS
        if _all_in(step, FORWARD) and _action(step, "down") not in (None, "compatible")
    ]
    assert mismatches == []
