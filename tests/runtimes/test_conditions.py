"""Conditions of the restrictions of kernels."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from support.toy_runtime import model

from opshift.model.files import model_of
from opshift.registry.record import from_plain_data
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.restrictions import Condition, Restriction
from opshift.runtimes.conditions import PARTS, WITHOUT_OPERATOR, concerns
from opshift.runtimes.model_nodes import ModelNode, ModelNodes
from opshift.runtimes.value_origins import ValueOrigins


def _last_node(nodes: str, types: str = "float[2] x") -> ModelNode:
    """Return the last node of the main graph of a model with these nodes and inputs."""
    found = ModelNodes(model_of(model(nodes, types).SerializeToString())[0], default_registry())
    return next(each for each in reversed(found.nodes) if each.scope is found.scope)


def _restriction(**content: Any) -> Restriction:
    return from_plain_data(Restriction, {"reason": "tests", **content})


def test_each_part_of_a_condition_is_evaluated() -> None:
    assert PARTS.keys() == {each.name for each in fields(Condition)}
    assert PARTS.keys() > WITHOUT_OPERATOR


@pytest.mark.parametrize(
    ("count", "returned", "is_unread"),
    [(1, "s, s", True), (1, "s, i", False), (2, "s, i", False), (0, "s, s", True), (0, "s, i", True)],
)
def test_finds_subgraphs_that_read_none_of_their_last_inputs(
    count: int, returned: str, *, is_unread: bool
) -> None:
    first, second = returned.split(", ")
    body = f"body (float s, float i) => (float a, float c) {{ a = Neg ({first}) c = Neg ({second}) }}"
    scan = f"z, y = Scan <num_scan_inputs = {count}, body = {body}> (k, x)"
    restriction = _restriction(when={"unread": {"body": "num_scan_inputs"}})
    assert concerns(restriction, _last_node(scan, "float k, float[2] x")) == is_unread


def test_nodes_without_an_effect_read_no_inputs() -> None:
    body = "body (float s, float i) => (float a) { b = Abs (i) a = Neg (s) }"
    scan = f"y = Scan <num_scan_inputs = 1, body = {body}> (k, x)"
    restriction = _restriction(when={"unread": {"body": "num_scan_inputs"}})
    assert concerns(restriction, _last_node(scan, "float k, float[2] x")) is True


@pytest.mark.parametrize(
    ("node", "is_returned"),
    [
        ("a = Identity (i)", True),
        ("p = Neg (s) a = Flatten (i)", True),
        ("a = Neg (i)", False),
        ("a = Add (s, i)", False),
    ],
)
def test_finds_states_that_are_scanned_inputs(node: str, *, is_returned: bool) -> None:
    body = f"body (float[1, 1] s, float[1, 1] i) => (float a, float c) {{ {node} c = Identity (i) }}"
    scan = f"z, y = Scan <num_scan_inputs = 1, body = {body}> (k, x)"
    restriction = _restriction(when={"returned": {"body": "num_scan_inputs"}})
    found = concerns(restriction, _last_node(scan, "float[1, 1] k, float[2, 1, 1] x"))
    assert found == is_returned


def test_searches_for_origins_only_without_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    include = ValueOrigins.include

    def count_and_include(*arguments: Any) -> bool:
        asked.append(arguments)
        return include(*arguments)

    monkeypatch.setattr(ValueOrigins, "include", count_and_include)
    node = _last_node("h = Abs (x) y = Neg (h)")
    when = {"computed_by": {"X": ["Abs"]}}
    assert concerns(_restriction(when=when), node) is True
    assert len(asked) == 1
    assert concerns(_restriction(when=when, unless={"present": ["X"]}), node) is False
    assert len(asked) == 1
