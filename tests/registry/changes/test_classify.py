"""Which rule classifies a change: every rule by a pair that trips it and one that comes close."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from opshift.registry.catalogue import default_registry
from opshift.registry.changes.classes import BACKWARD, FORWARD, MEANINGS, ChangeClass, gravest
from opshift.registry.changes.classify import (
    RULES,
    change_rules,
    changes_between,
    class_of,
    classify,
    rule_for,
)
from opshift.registry.changes.history import HistoryStep, history_steps
from opshift.registry.changes.wording import WORDINGS
from opshift.registry.diff import KINDS, Change
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import checked

Fields = dict[str, Any]
X = {"name": "X", "type": "tensor(float)"}
Y = {"name": "Y", "type": "tensor(float)"}
OPTIONAL_Y = {**Y, "option": "optional"}
MODE = {"name": "mode", "type": "tensor(int64)", "option": "optional"}
BOTH = {"up": "adapter", "down": "adapter"}
SAME = {"up": "compatible", "down": "compatible"}
NO_WAY = {"refuse": "there is no way to say that"}


def _version(since_version: int, fields: Fields) -> OperatorVersion:
    stated = {"domain": "com.acme", "name": "Blur", "since_version": since_version, **fields}
    return checked(OperatorVersion, stated)


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


class Pair(NamedTuple):
    """A rule, and two versions that trip it, or come close."""

    rule: str
    old: Fields
    new: Fields
    is_edit: bool = False
    """Whether both are one version, in two trees."""


TRIPPED = {
    "an attribute is an input": Pair("attribute-became-input", _attribute(), _inputs(X, MODE)),
    "an input comes that was an attribute": Pair(
        "attribute-became-input", {**_attribute(), **_inputs(X)}, _inputs(X, MODE)
    ),
    "an attribute is an input of another name, as the step says": Pair(
        "attribute-became-input",
        _attribute(),
        {
            **_inputs({"name": "how", "type": "tensor(int64)"}),
            **_step([{"attribute_to_input": {"attribute": "mode", "input": "how"}}]),
        },
    ),
    "an attribute never did anything": Pair(
        "attribute-without-effect-removed", _attribute(), _step([{"ignore_attribute": "mode"}])
    ),
    "an attribute has another name": Pair(
        "attribute-renamed",
        _attribute(),
        {**_attribute("how"), **_step([{"rename_attribute": {"attribute": "mode", "to": "how"}}])},
    ),
    "adapters say one attribute by others": Pair(
        "attributes-replaced", _attribute(), {**_attribute("how"), "step": BOTH}
    ),
    "an attribute is gone": Pair("attribute-removed", _attribute(), {}),
    "an input is an attribute": Pair(
        "input-became-attribute", _inputs(X, MODE), {**_inputs(X), **_attribute()}
    ),
    "a demanded attribute comes and the step states it": Pair(
        "required-attribute-supplied",
        {},
        {
            **_attribute(required=True),
            **_step([{"add_attribute": {"attribute": "mode", "value": 1}}]),
        },
    ),
    "a demanded attribute comes": Pair("required-attribute-added", {}, _attribute(required=True)),
    "an attribute comes": Pair("attribute-added", {}, _attribute(default=1)),
    "adapters read one type as another": Pair(
        "attribute-retyped", _attribute(), {**_attribute(type="STRING"), "step": BOTH}
    ),
    "an attribute has another type": Pair("attribute-type-changed", _attribute(), _attribute(type="STRING")),
    "a default is another": Pair("default-changed", _attribute(default=1), _attribute(default=2)),
    "a default is stated": Pair("default-changed", _attribute(), _attribute(default=2)),
    "an attribute is demanded": Pair("attribute-became-required", _attribute(), _attribute(required=True)),
    "an attribute is demanded no longer": Pair(
        "attribute-became-optional", _attribute(required=True), _attribute()
    ),
    "values have other names": Pair(
        "values-renamed",
        _attribute(type="STRING", values=["bilinear"]),
        {
            **_attribute(type="STRING", values=["linear"]),
            **_step([{"rename_value": {"attribute": "mode", "values": {"bilinear": "linear"}}}]),
        },
    ),
    "a value is gone": Pair("values-removed", _attribute(values=[0, 1]), _attribute(values=[0])),
    "a bound is tighter": Pair("values-removed", _attribute(minimum=0), _attribute(minimum=1)),
    "a value joins": Pair("values-added", _attribute(values=[0]), _attribute(values=[0, 1])),
    "adapters put an input in between": Pair(
        "parameters-rearranged", _inputs(X, Y), {**_inputs(X, OPTIONAL_Y | {"name": "Z"}, Y), "step": BOTH}
    ),
    "adapters do without a demanded input": Pair(
        "parameters-rearranged", _inputs(X, Y), {**_inputs(X), "step": BOTH}
    ),
    "adapters feed a new input": Pair("required-input-supplied", _inputs(X), {**_inputs(X, Y), "step": BOTH}),
    "a demanded input comes": Pair("required-input-added", _inputs(X), _inputs(X, Y)),
    "an input comes": Pair("input-added", _inputs(X), _inputs(X, OPTIONAL_Y)),
    "a demanded input is gone": Pair("required-input-removed", _inputs(X, Y), _inputs(X)),
    "an input is gone": Pair("input-removed", _inputs(X, OPTIONAL_Y), _inputs(X)),
    "a demanded output comes": Pair("required-output-added", _outputs(X), _outputs(X, Y)),
    "an output comes": Pair("output-added", _outputs(X), _outputs(X, OPTIONAL_Y)),
    "a demanded output is gone": Pair("required-output-removed", _outputs(X, Y), _outputs(X)),
    "an output is gone": Pair("output-removed", _outputs(X, OPTIONAL_Y), _outputs(X)),
    "two inputs change places": Pair("parameters-reordered", _inputs(X, Y), _inputs(Y, X)),
    "two outputs change places": Pair("parameters-reordered", _outputs(X, Y), _outputs(Y, X)),
    "an input has another name": Pair("parameter-renamed", _inputs(X), _inputs({**X, "name": "input"})),
    "an input is demanded": Pair("parameter-demands-more", _inputs(X, OPTIONAL_Y), _inputs(X, Y)),
    "an output is demanded": Pair("parameter-demands-more", _outputs(X, OPTIONAL_Y), _outputs(X, Y)),
    "an input may be left out": Pair("parameter-demands-less", _inputs(X, Y), _inputs(X, OPTIONAL_Y)),
    "types join": Pair("types-added", _type("tensor(float)"), _type("tensor(double)", "tensor(float)")),
    "types are gone": Pair("types-removed", _type("tensor(double)", "tensor(float)"), _type("tensor(float)")),
    "types are others": Pair("types-removed", _type("tensor(double)"), _type("tensor(float)")),
    "determinism is said": Pair("determinism-stated", {"determinism": "unknown"}, {}),
    "determinism is another": Pair("determinism-changed", {}, {"determinism": "non_deterministic"}),
    "an experiment ends": Pair("experiment-ended", {"status": "EXPERIMENTAL"}, {}),
    "an experiment begins": Pair("stability-lost", {}, {"status": "EXPERIMENTAL"}),
    "it is deprecated": Pair("operator-deprecated", {}, {"deprecation": {"replaced_by": "Sharpen"}}),
    "it is deprecated no longer": Pair("operator-restored", {"deprecation": {}}, {}),
    "it leaves its set": Pair("operator-removed", {}, {"removal": {"removed_in": 9, "up": "adapter"}}, True),
    "it stays in its set": Pair(
        "removal-withdrawn", {"removal": {"removed_in": 9, "up": "adapter"}}, {}, True
    ),
    "an attribute names a type": Pair(
        "type-rule-added",
        _outputs(X) | _attribute(),
        _outputs({**X, "type_attribute": "mode"}) | _attribute(),
    ),
    "another attribute names a type": Pair(
        "type-rule-changed",
        _outputs({**X, "type_attribute": "mode"}),
        _outputs({**X, "type_attribute": "how"}),
    ),
    "a body is another, and the step says it is the same": Pair(
        "body-rewritten", _body("Relu"), {**_body("Clip"), "step": SAME}
    ),
    "a body comes": Pair("body-added", {}, _body("Relu")),
    "a body is gone": Pair("body-removed", _body("Relu"), {}),
    "a body is another": Pair("body-changed", _body("Relu"), _body("Clip")),
    "a description is another": Pair("description-changed", {"description": "a"}, {"description": "b"}),
    "absence is described in other words": Pair(
        "description-changed", _attribute(absent="none"), _attribute(absent="nothing")
    ),
    "a shape rule is another": Pair("facts-changed", {"shape": "first"}, {"shape": "same_as_first"}),
    "differentiability is said": Pair(
        "facts-changed", _inputs(X), _inputs({**X, "differentiation": "differentiable"})
    ),
    "a step is answered in another way": Pair("conversion-changed", {"step": BOTH}, {"step": SAME}, True),
    "what was before is answered": Pair("conversion-changed", {}, {"before": "adapter"}, True),
    "no way leads there or back": Pair("meaning-changed", {}, _step(NO_WAY, NO_WAY)),
    "no way leads there": Pair("behaviour-removed", {}, _step(NO_WAY, "compatible")),
    "adapters say one meaning by another": Pair("meaning-re-encoded", {}, {"step": BOTH}),
    "only the way back needs an adapter": Pair("behaviour-added", {}, _step("compatible", "adapter")),
    "only the way back is refused": Pair("behaviour-added", {}, _step("compatible", NO_WAY)),
    "nothing is said to be different": Pair("text-clarified", {}, {"step": SAME}),
}

CLOSE = {
    "attribute-became-input": Pair("attribute-removed", _attribute(), {**_inputs(), "step": BOTH}),
    "attribute-without-effect-removed": Pair(
        "attribute-removed", _attribute(), _step([{"drop_attribute": "mode"}])
    ),
    "attribute-renamed": Pair("attribute-removed", _attribute(), _attribute("how")),
    "attributes-replaced": Pair("attribute-removed", _attribute(), {**_attribute("how"), "step": SAME}),
    "attribute-removed": Pair("attribute-became-input", _attribute("k"), _inputs({**X, "name": "K"})),
    "input-became-attribute": Pair("input-removed", _inputs(X, OPTIONAL_Y), {**_inputs(X), **_attribute()}),
    "required-attribute-supplied": Pair(
        "required-attribute-added", {}, {**_attribute(required=True), "step": SAME}
    ),
    "required-attribute-added": Pair("attribute-added", {}, _attribute()),
    "attribute-added": Pair("required-attribute-added", {}, _attribute(required=True)),
    "attribute-retyped": Pair(
        "attribute-type-changed", _attribute(), {**_attribute(type="STRING"), **_step("adapter", NO_WAY)}
    ),
    "attribute-type-changed": Pair("default-changed", _attribute(default=1), _attribute(default=2)),
    "default-changed": Pair("attribute-added", {}, _attribute(default=2)),
    "attribute-became-required": Pair("attribute-became-optional", _attribute(required=True), _attribute()),
    "attribute-became-optional": Pair("attribute-became-required", _attribute(), _attribute(required=True)),
    "values-renamed": Pair("values-removed", _attribute(values=[0]), _attribute(values=[1])),
    "values-removed": Pair("values-added", _attribute(minimum=1), _attribute(minimum=0)),
    "values-added": Pair("values-removed", _attribute(values=[0, 1]), _attribute(values=[1, 2])),
    "parameters-rearranged": Pair("parameters-reordered", _inputs(X, Y), {**_inputs(Y, X), "step": SAME}),
    "required-input-supplied": Pair("required-input-added", _inputs(X), {**_inputs(X, Y), "step": SAME}),
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
    "body-rewritten": Pair("body-changed", _body("Relu"), {**_body("Clip"), "step": BOTH}),
    "body-added": Pair("body-removed", _body("Relu"), {}),
    "body-removed": Pair("body-added", {}, _body("Relu")),
    "body-changed": Pair("body-rewritten", _body("Relu"), {**_body("Clip"), "step": SAME}),
    "description-changed": Pair("facts-changed", {"shape": "first"}, {}),
    "facts-changed": Pair("description-changed", {"description": "a"}, {}),
    "conversion-changed": Pair("meaning-re-encoded", {}, {"step": BOTH}),
    "meaning-changed": Pair("behaviour-removed", {}, _step(NO_WAY, "adapter")),
    "behaviour-removed": Pair("meaning-changed", {}, _step(NO_WAY, NO_WAY)),
    "meaning-re-encoded": Pair("behaviour-added", {}, _step("compatible", "adapter")),
    "behaviour-added": Pair("text-clarified", {}, _step("compatible")),
    "text-clarified": Pair("behaviour-added", {}, _step("compatible", "adapter")),
}
COMES_AND_GOES = {"version-deleted", "version-inserted", "operator-added"}
"""Rules about what has no two definitions to compare."""


def _rules(pair: Pair) -> set[str]:
    return {
        each.rule for each in classify(_version(1, pair.old), _version(1 if pair.is_edit else 2, pair.new))
    }


@pytest.mark.parametrize("pair", TRIPPED.values(), ids=TRIPPED)
def test_a_pair_trips_its_rule(pair: Pair) -> None:
    assert pair.rule in _rules(pair)


@pytest.mark.parametrize(("rule", "pair"), CLOSE.items(), ids=CLOSE)
def test_a_pair_that_comes_close_trips_another(rule: str, pair: Pair) -> None:
    found = _rules(pair)
    assert rule not in found
    assert pair.rule in found


def test_every_rule_is_tripped_by_one_pair_and_not_by_another() -> None:
    assert {pair.rule for pair in TRIPPED.values()} == change_rules().keys() - COMES_AND_GOES
    assert CLOSE.keys() == change_rules().keys() - COMES_AND_GOES


@pytest.mark.parametrize("rule", sorted(COMES_AND_GOES))
def test_what_comes_and_goes_has_its_own_rules(rule: str) -> None:
    change = Change(rule.replace("-", "_"), "Blur", None, 2)
    assert rule_for(change, _version(2, {})).rule == rule


def test_rules_of_one_id_say_the_same_and_in_a_sentence() -> None:
    assert {(rule.id, rule.change_class, rule.purpose) for rule in RULES} == {
        (rule.id, rule.change_class, rule.purpose) for rule in change_rules().values()
    }
    assert [rule.id for rule in RULES if not rule.purpose.endswith(".") or len(rule.purpose) > 110] == []


def test_every_class_has_a_meaning_and_a_rule() -> None:
    assert set(MEANINGS) == set(ChangeClass) == {rule.change_class for rule in RULES}


def test_the_gravest_class_counts() -> None:
    assert gravest([]) is ChangeClass.DOCUMENTATION
    assert gravest([ChangeClass.REMOVAL, ChangeClass.WIDENING]) is ChangeClass.REMOVAL
    changes = classify(
        _version(1, _attribute(default=1)), _version(2, {**_attribute(default=2), "shape": "first"})
    )
    assert class_of(changes) is ChangeClass.CHANGES_DEFAULT


def test_equal_definitions_are_no_change() -> None:
    assert classify(_version(1, _attribute()), _version(1, _attribute())) == ()


def test_a_change_tells_what_it_is_about_as_plain_data() -> None:
    (change,) = classify(_version(1, _attribute(default=1)), _version(2, _attribute(default=2)))
    assert change.as_dict() == {
        "rule": "default-changed",
        "class": "changes-default",
        "subject": "mode",
        "change": "attribute default: mode: 1 -> 2",
        "purpose": "The meaning of a node without the attribute changed.",
    }


# Over several versions

THREE = Operator(
    domain="com.acme",
    name="Blur",
    versions=(
        _version(1, _attribute(default=1)),
        _version(3, {**_attribute(default=2), "step": BOTH}),
        _version(5, {**_attribute(default=1), **_step("adapter", "adapter")}),
    ),
)


@pytest.mark.parametrize(
    ("start", "goal", "rules"),
    [
        pytest.param(1, 3, ["default-changed"], id="neighbours"),
        pytest.param(1, 5, [], id="there and back"),
        pytest.param(5, 1, [], id="downwards"),
        pytest.param(3, 1, ["default-changed"], id="to the neighbour below"),
        pytest.param(3, 3, [], id="itself"),
    ],
)
def test_changes_between_any_two_versions(start: int, goal: int, rules: list[str]) -> None:
    assert [each.rule for each in changes_between(THREE, start, goal)] == rules


def test_what_only_a_step_tells_is_not_lost_over_several() -> None:
    versions = (_version(1, {}), _version(2, {"step": BOTH}), _version(3, {"step": SAME}))
    operator = Operator(domain="com.acme", name="Blur", versions=versions)
    assert [each.rule for each in changes_between(operator, 1, 3)] == ["meaning-re-encoded"]


def test_a_version_that_there_is_not() -> None:
    with pytest.raises(KeyError):
        changes_between(THREE, 1, 2)


# ONNX's history

STEPS = [step for step in history_steps(default_registry().operators()) if step.new]


def test_every_kind_of_change_has_a_rule() -> None:
    there = {each.change.kind for step in STEPS for each in step.changes}
    assert there <= {*KINDS, *WORDINGS, "meaning", "behaviour", "text"}
    assert len(STEPS) >= 432


def _passes(step: HistoryStep, classes: frozenset[ChangeClass]) -> bool:
    return all(each.change_class in classes for each in step.changes)


def _answer(step: HistoryStep, way: str) -> object:
    assert step.new is not None
    return getattr(step.new.step, way, None)


def test_rules_and_steps_agree_on_what_passes_backward() -> None:
    """A step needs no rewriting exactly if its changes let older nodes stay, but for types that went."""
    odd = [
        step.operator
        for step in STEPS
        if _passes(step, BACKWARD) != (_answer(step, "up") in (None, "compatible"))
        and "types-removed" not in {each.rule for each in step.changes}
    ]
    assert odd == []


def test_what_passes_forward_needs_no_rewriting_on_the_way_back() -> None:
    odd = [
        step.operator
        for step in STEPS
        if _passes(step, FORWARD) and _answer(step, "down") not in (None, "compatible")
    ]
    assert odd == []
