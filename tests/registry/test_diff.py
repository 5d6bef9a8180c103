"""Every kind of difference between two versions, and how it reads."""

from typing import Any

import pytest

from opshift.registry.catalogue import default_registry
from opshift.registry.diff import KINDS, Change, diff
from opshift.registry.models import OperatorVersion
from opshift.registry.record import checked

X = {"name": "X", "type": "tensor(float)"}
Y = {"name": "Y", "type": "tensor(float)"}
INT = {"type": "INT"}
T = frozenset(("tensor(float)",))
T_AND_DOUBLE = frozenset(("tensor(double)", "tensor(float)"))

# What one version says, what the next says, the change, and how it reads.
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], Change, str]] = {
    "an attribute comes": (
        {},
        {"attributes": {"axis": {"type": "INT", "default": 1}}},
        Change("attribute_added", "axis", None, 1),
        "attribute added: axis: nothing -> 1",
    ),
    "an attribute comes without a default": (
        {},
        {"attributes": {"axis": INT}},
        Change("attribute_added", "axis", None, None),
        "attribute added: axis",
    ),
    "an attribute goes": (
        {"attributes": {"axis": {"type": "INT", "default": 1}}},
        {},
        Change("attribute_removed", "axis", 1, None),
        "attribute removed: axis: 1 -> nothing",
    ),
    "an attribute has another type": (
        {"attributes": {"to": {"type": "STRING"}}},
        {"attributes": {"to": INT}},
        Change("attribute_type", "to", "STRING", "INT"),
        "attribute type: to: STRING -> INT",
    ),
    "another default": (
        {"attributes": {"axis": {"type": "INT", "default": 1}}},
        {"attributes": {"axis": {"type": "INT", "default": -1}}},
        Change("attribute_default", "axis", 1, -1),
        "attribute default: axis: 1 -> -1",
    ),
    "a default where there was none": (
        {"attributes": {"axis": INT}},
        {"attributes": {"axis": {"type": "INT", "default": 0}}},
        Change("attribute_default", "axis", None, 0),
        "attribute default: axis: nothing -> 0",
    ),
    "an attribute has to be there": (
        {"attributes": {"to": INT}},
        {"attributes": {"to": {"type": "INT", "required": True}}},
        Change("attribute_required", "to", False, True),
        "attribute required: to: False -> True",
    ),
    "a value joins": (
        {"attributes": {"mode": {"type": "STRING", "values": ["nearest", "linear"]}}},
        {"attributes": {"mode": {"type": "STRING", "values": ["nearest", "linear", "cubic"]}}},
        Change("attribute_values", "mode", "nearest, linear", "nearest, linear, cubic"),
        "attribute values: mode: nearest, linear -> nearest, linear, cubic",
    ),
    "a range is declared": (
        {"attributes": {"group": INT}},
        {"attributes": {"group": {"type": "INT", "minimum": 1}}},
        Change("attribute_values", "group", "any", "1.."),
        "attribute values: group: any -> 1..",
    ),
    "a range has an end": (
        {"attributes": {"share": {"type": "FLOAT", "minimum": 0}}},
        {"attributes": {"share": {"type": "FLOAT", "minimum": 0, "maximum": 1}}},
        Change("attribute_values", "share", "0..", "0..1"),
        "attribute values: share: 0.. -> 0..1",
    ),
    "an input comes": (
        {"inputs": [X]},
        {"inputs": [X, {**Y, "option": "optional"}]},
        Change("input_added", "Y", None, "optional"),
        "input added: Y: nothing -> optional",
    ),
    "an input goes": (
        {"inputs": [X, Y]},
        {"inputs": [X]},
        Change("input_removed", "Y", "single", None),
        "input removed: Y: single -> nothing",
    ),
    "an input may be left out": (
        {"inputs": [X]},
        {"inputs": [{**X, "option": "optional"}]},
        Change("input_option", "X", ("single", 1, True), ("optional", 1, True)),
        "input option: X: ('single', 1, True) -> ('optional', 1, True)",
    ),
    "an input takes more values": (
        {"inputs": [{**X, "option": "variadic"}]},
        {"inputs": [{**X, "option": "variadic", "min_arity": 2}]},
        Change("input_option", "X", ("variadic", 1, True), ("variadic", 2, True)),
        "input option: X: ('variadic', 1, True) -> ('variadic', 2, True)",
    ),
    "values of an input may differ in type": (
        {"inputs": [{**X, "option": "variadic"}]},
        {"inputs": [{**X, "option": "variadic", "homogeneous": False}]},
        Change("input_option", "X", ("variadic", 1, True), ("variadic", 1, False)),
        "input option: X: ('variadic', 1, True) -> ('variadic', 1, False)",
    ),
    "an input has another name": (
        {"inputs": [X]},
        {"inputs": [{**X, "name": "input"}]},
        Change("input_name", "input", "X", "input"),
        "input name: input: X -> input",
    ),
    "an input takes more types": (
        {"inputs": [{"name": "X", "type": "T"}], "type_constraints": {"T": sorted(T)}},
        {"inputs": [{"name": "X", "type": "T"}], "type_constraints": {"T": sorted(T_AND_DOUBLE)}},
        Change("input_types", "X", T, T_AND_DOUBLE),
        "input types: X: {tensor(float)} -> {tensor(double), tensor(float)}",
    ),
    "an output comes": (
        {"outputs": [X]},
        {"outputs": [X, Y]},
        Change("output_added", "Y", None, "single"),
        "output added: Y: nothing -> single",
    ),
    "an output goes": (
        {"outputs": [X, {**Y, "option": "optional"}]},
        {"outputs": [X]},
        Change("output_removed", "Y", "optional", None),
        "output removed: Y: optional -> nothing",
    ),
    "an output need not be taken": (
        {"outputs": [Y]},
        {"outputs": [{**Y, "option": "optional"}]},
        Change("output_option", "Y", ("single", 1, True), ("optional", 1, True)),
        "output option: Y: ('single', 1, True) -> ('optional', 1, True)",
    ),
    "an output has another name": (
        {"outputs": [Y]},
        {"outputs": [{**Y, "name": "output"}]},
        Change("output_name", "output", "Y", "output"),
        "output name: output: Y -> output",
    ),
    "an output has another type": (
        {"outputs": [Y]},
        {"outputs": [{**Y, "type": "tensor(bool)"}]},
        Change("output_types", "Y", T, frozenset(("tensor(bool)",))),
        "output types: Y: {tensor(float)} -> {tensor(bool)}",
    ),
    "results may differ from run to run": (
        {},
        {"determinism": "non_deterministic"},
        Change("determinism", "Blur", "deterministic", "non_deterministic"),
        "determinism: Blur: deterministic -> non_deterministic",
    ),
    "an experiment ends": (
        {"status": "EXPERIMENTAL"},
        {},
        Change("status", "Blur", "EXPERIMENTAL", "STABLE"),
        "status: Blur: EXPERIMENTAL -> STABLE",
    ),
    "an operator is deprecated": (
        {},
        {"deprecation": {"replaced_by": "Sharpen"}},
        Change("deprecation", "Blur", False, True),
        "deprecation: Blur: False -> True",
    ),
}

# Pairs that say the same, or differ in what is no part of the signature.
SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "the description": ({"description": "Blurs."}, {"description": "Blurs a picture."}),
    "the shape rule": ({}, {"shape": "same_as_first"}),
    "the name of a type variable": (
        {"inputs": [{"name": "X", "type": "T"}], "type_constraints": {"T": sorted(T)}},
        {"inputs": [{"name": "X", "type": "U"}], "type_constraints": {"U": sorted(T)}},
    ),
    "a type by its variable or by itself": (
        {"inputs": [X]},
        {"inputs": [{"name": "X", "type": "T"}], "type_constraints": {"T": sorted(T)}},
    ),
    "whether an input has a gradient": (
        {"inputs": [X]},
        {"inputs": [{**X, "differentiation": "differentiable"}]},
    ),
    "the order of attributes": ({"attributes": {"a": INT, "b": INT}}, {"attributes": {"b": INT, "a": INT}}),
}


def _version(since_version: int, fields: dict[str, Any]) -> OperatorVersion:
    stated = {"domain": "com.acme", "name": "Blur", "since_version": since_version, **fields}
    return checked(OperatorVersion, stated)


@pytest.mark.parametrize(("old", "new", "change", "text"), CHANGES.values(), ids=CHANGES)
def test_a_difference_is_named(old: dict[str, Any], new: dict[str, Any], change: Change, text: str) -> None:
    assert diff(_version(1, old), _version(2, new)) == (change,)
    assert str(change) == text


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_what_is_no_difference_is_not_named(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert diff(_version(1, old), _version(2, new)) == ()


def test_every_kind_is_in_the_table() -> None:
    assert {change.kind for _, _, change, _ in CHANGES.values()} == set(KINDS)


def test_all_differences_are_found_attributes_first() -> None:
    old = _version(1, {"inputs": [X, Y], "attributes": {"b": INT, "a": INT}})
    new = _version(2, {"inputs": [{**X, "name": "input"}], "outputs": [Y], "status": "EXPERIMENTAL"})
    assert [(change.kind, change.subject) for change in diff(old, new)] == [
        ("attribute_removed", "a"),
        ("attribute_removed", "b"),
        ("input_name", "input"),
        ("input_removed", "Y"),
        ("output_added", "Y"),
        ("status", "Blur"),
    ]


OPERATORS = list(default_registry().operators())
PAIRS = [pair for each in OPERATORS for pair in zip(each.versions, each.versions[1:], strict=False)]


def test_no_other_kind_occurs_in_any_operator_of_onnx() -> None:
    assert len(PAIRS) > 400
    assert {change.kind for old, new in PAIRS for change in (*diff(old, new), *diff(new, old))} <= set(KINDS)


def test_going_back_finds_the_same_subjects_in_every_operator_of_onnx() -> None:
    renamed = ("input_name", "output_name", "input_option", "output_option", "input_types", "output_types")
    for old, new in PAIRS:
        up, down = ({c.subject for c in d if c.kind not in renamed} for d in (diff(old, new), diff(new, old)))
        assert up == down, (old.id, new.id)
