"""Every kind of difference between two versions, and its text."""

import math
from typing import Any

import pytest

from opshift.registry.changes.diff import Change, diff
from opshift.registry.models import OperatorVersion
from opshift.registry.record import from_plain_data
from opshift.registry.registry import default_registry

CHANGE_KINDS = (
    *(f"attribute_{what}" for what in ("added", "removed", "type", "default", "required", "values")),
    *(
        f"{side}_{what}"
        for side in ("input", "output")
        for what in ("added", "removed", "option", "name", "types")
    ),
    "determinism",
    "status",
    "deprecation",
)
"""All kinds of change that `diff` reports."""

X = {"name": "X", "type": "tensor(float)"}
Y = {"name": "Y", "type": "tensor(float)"}
INT = {"type": "INT"}
T = frozenset(("tensor(float)",))
T_AND_DOUBLE = frozenset(("tensor(double)", "tensor(float)"))

# Fields of one version, fields of the next, the change, and its text.
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], Change, str]] = {
    "an added attribute with a default": (
        {},
        {"attributes": {"axis": {"type": "INT", "default": 1}}},
        Change("attribute_added", "axis", None, 1),
        "attribute added: axis: nothing -> 1",
    ),
    "an added attribute without a default": (
        {},
        {"attributes": {"axis": INT}},
        Change("attribute_added", "axis", None, None),
        "attribute added: axis",
    ),
    "a removed attribute": (
        {"attributes": {"axis": {"type": "INT", "default": 1}}},
        {},
        Change("attribute_removed", "axis", 1, None),
        "attribute removed: axis: 1 -> nothing",
    ),
    "a changed sign of zero": (
        {"attributes": {"a": {"type": "FLOAT", "default": 0.0}}},
        {"attributes": {"a": {"type": "FLOAT", "default": -0.0}}},
        Change("attribute_default", "a", 0.0, -0.0),
        "attribute default: a: 0.0 -> -0.0",
    ),
    "a changed attribute type": (
        {"attributes": {"to": {"type": "STRING"}}},
        {"attributes": {"to": INT}},
        Change("attribute_type", "to", "STRING", "INT"),
        "attribute type: to: STRING -> INT",
    ),
    "a changed default": (
        {"attributes": {"axis": {"type": "INT", "default": 1}}},
        {"attributes": {"axis": {"type": "INT", "default": -1}}},
        Change("attribute_default", "axis", 1, -1),
        "attribute default: axis: 1 -> -1",
    ),
    "an added default": (
        {"attributes": {"axis": INT}},
        {"attributes": {"axis": {"type": "INT", "default": 0}}},
        Change("attribute_default", "axis", None, 0),
        "attribute default: axis: nothing -> 0",
    ),
    "an attribute becomes required": (
        {"attributes": {"to": INT}},
        {"attributes": {"to": {"type": "INT", "required": True}}},
        Change("attribute_required", "to", False, True),
        "attribute required: to: False -> True",
    ),
    "an added value": (
        {"attributes": {"mode": {"type": "STRING", "values": ["nearest", "linear"]}}},
        {"attributes": {"mode": {"type": "STRING", "values": ["nearest", "linear", "cubic"]}}},
        Change("attribute_values", "mode", "nearest, linear", "nearest, linear, cubic"),
        "attribute values: mode: nearest, linear -> nearest, linear, cubic",
    ),
    "an added minimum": (
        {"attributes": {"group": INT}},
        {"attributes": {"group": {"type": "INT", "minimum": 1}}},
        Change("attribute_values", "group", "any", "1.."),
        "attribute values: group: any -> 1..",
    ),
    "an added maximum": (
        {"attributes": {"share": {"type": "FLOAT", "minimum": 0}}},
        {"attributes": {"share": {"type": "FLOAT", "minimum": 0, "maximum": 1}}},
        Change("attribute_values", "share", "0..", "0..1"),
        "attribute values: share: 0.. -> 0..1",
    ),
    "an added input": (
        {"inputs": [X]},
        {"inputs": [X, {**Y, "option": "optional"}]},
        Change("input_added", "Y", None, "optional"),
        "input added: Y: nothing -> optional",
    ),
    "a removed input": (
        {"inputs": [X, Y]},
        {"inputs": [X]},
        Change("input_removed", "Y", "single", None),
        "input removed: Y: single -> nothing",
    ),
    "an input becomes optional": (
        {"inputs": [X]},
        {"inputs": [{**X, "option": "optional"}]},
        Change("input_option", "X", ("single", 1, True), ("optional", 1, True)),
        "input option: X: ('single', 1, True) -> ('optional', 1, True)",
    ),
    "a larger minimum number of values": (
        {"inputs": [{**X, "option": "variadic"}]},
        {"inputs": [{**X, "option": "variadic", "min_arity": 2}]},
        Change("input_option", "X", ("variadic", 1, True), ("variadic", 2, True)),
        "input option: X: ('variadic', 1, True) -> ('variadic', 2, True)",
    ),
    "an input becomes heterogeneous": (
        {"inputs": [{**X, "option": "variadic"}]},
        {"inputs": [{**X, "option": "variadic", "homogeneous": False}]},
        Change("input_option", "X", ("variadic", 1, True), ("variadic", 1, False)),
        "input option: X: ('variadic', 1, True) -> ('variadic', 1, False)",
    ),
    "a renamed input": (
        {"inputs": [X]},
        {"inputs": [{**X, "name": "input"}]},
        Change("input_name", "input", "X", "input"),
        "input name: input: X -> input",
    ),
    "an added input type": (
        {"inputs": [{"name": "X", "type": "T"}], "type_constraints": {"T": sorted(T)}},
        {"inputs": [{"name": "X", "type": "T"}], "type_constraints": {"T": sorted(T_AND_DOUBLE)}},
        Change("input_types", "X", T, T_AND_DOUBLE),
        "input types: X: {tensor(float)} -> {tensor(double), tensor(float)}",
    ),
    "an added output": (
        {"outputs": [X]},
        {"outputs": [X, Y]},
        Change("output_added", "Y", None, "single"),
        "output added: Y: nothing -> single",
    ),
    "a removed output": (
        {"outputs": [X, {**Y, "option": "optional"}]},
        {"outputs": [X]},
        Change("output_removed", "Y", "optional", None),
        "output removed: Y: optional -> nothing",
    ),
    "an output becomes optional": (
        {"outputs": [Y]},
        {"outputs": [{**Y, "option": "optional"}]},
        Change("output_option", "Y", ("single", 1, True), ("optional", 1, True)),
        "output option: Y: ('single', 1, True) -> ('optional', 1, True)",
    ),
    "a renamed output": (
        {"outputs": [Y]},
        {"outputs": [{**Y, "name": "output"}]},
        Change("output_name", "output", "Y", "output"),
        "output name: output: Y -> output",
    ),
    "a changed output type": (
        {"outputs": [Y]},
        {"outputs": [{**Y, "type": "tensor(bool)"}]},
        Change("output_types", "Y", T, frozenset(("tensor(bool)",))),
        "output types: Y: {tensor(float)} -> {tensor(bool)}",
    ),
    "an operator becomes non-deterministic": (
        {},
        {"determinism": "non_deterministic"},
        Change("determinism", "Blur", "deterministic", "non_deterministic"),
        "determinism: Blur: deterministic -> non_deterministic",
    ),
    "an operator becomes stable": (
        {"status": "EXPERIMENTAL"},
        {},
        Change("status", "Blur", "EXPERIMENTAL", "STABLE"),
        "status: Blur: EXPERIMENTAL -> STABLE",
    ),
    "an operator becomes deprecated": (
        {},
        {"deprecation": {"replaced_by": "Sharpen"}},
        Change("deprecation", "Blur", False, True),
        "deprecation: Blur: False -> True",
    ),
}

# Pairs that are equal or differ only outside the signature.
EQUAL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "equal versions": ({}, {}),
    "the shape rule": ({}, {"shape": "same_as_first"}),
    "the name of a type variable": (
        {"inputs": [{"name": "X", "type": "T"}], "type_constraints": {"T": sorted(T)}},
        {"inputs": [{"name": "X", "type": "U"}], "type_constraints": {"U": sorted(T)}},
    ),
    "a type written directly or as a type variable": (
        {"inputs": [X]},
        {"inputs": [{"name": "X", "type": "T"}], "type_constraints": {"T": sorted(T)}},
    ),
    "the differentiability of an input": (
        {"inputs": [X]},
        {"inputs": [{**X, "differentiation": "differentiable"}]},
    ),
    "the order of attributes": ({"attributes": {"a": INT, "b": INT}}, {"attributes": {"b": INT, "a": INT}}),
}


def _version(since_version: int, fields: dict[str, Any]) -> OperatorVersion:
    data = {"domain": "com.acme", "name": "Blur", "since_version": since_version, **fields}
    return from_plain_data(OperatorVersion, data)


@pytest.mark.parametrize(("old", "new", "change", "text"), CHANGES.values(), ids=CHANGES)
def test_reports_a_difference(old: dict[str, Any], new: dict[str, Any], change: Change, text: str) -> None:
    assert diff(_version(1, old), _version(2, new)) == (change,)
    assert str(change) == text


@pytest.mark.parametrize(("old", "new"), EQUAL.values(), ids=EQUAL)
def test_ignores_differences_outside_the_signature(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert diff(_version(1, old), _version(2, new)) == ()


def test_the_table_covers_every_kind() -> None:
    assert {change.kind for _, _, change, _ in CHANGES.values()} == set(CHANGE_KINDS)


def test_reports_all_differences_with_attributes_first() -> None:
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


def test_every_difference_between_onnx_versions_has_a_known_kind() -> None:
    assert len(PAIRS) > 400
    assert {change.kind for old, new in PAIRS for change in (*diff(old, new), *diff(new, old))} <= set(
        CHANGE_KINDS
    )


def test_both_directions_report_the_same_subjects_for_onnx_operators() -> None:
    renamed = ("input_name", "output_name", "input_option", "output_option", "input_types", "output_types")
    for old, new in PAIRS:
        up, down = ({c.subject for c in d if c.kind not in renamed} for d in (diff(old, new), diff(new, old)))
        assert up == down, (old.id, new.id)


def test_nan_is_equal_to_nan() -> None:
    fields = {"attributes": {"a": {"type": "FLOATS", "default": [math.nan, math.inf]}}}
    data = {"domain": "com.acme", "name": "Blur", "since_version": 1, **fields}
    one, other = (from_plain_data(OperatorVersion, data) for _ in range(2))
    assert diff(one, other) == ()
