"""Operators that compute values, directly or through other nodes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from onnx import parser

from opshift.inference.scope import Scope
from opshift.model.files import model_of
from opshift.registry.registry import default_registry
from opshift.runtimes import value_origins
from opshift.runtimes.model_nodes import ModelNodes
from opshift.runtimes.value_origins import ValueOrigins


def scope_of(nodes: str) -> Scope:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[M] y) {{ {nodes} }}'
    model, _ = model_of(parser.parse_model(text).SerializeToString())
    return ModelNodes(model, default_registry()).scope


DIAMOND = """
    s = Shape (x)
    f = Cast <to = 1> (s)
    a = Relu (x)
    b = Exp (a)
    c = Add (a, b)
    d = Add (c, f)
    e = Mul (a, d)
    y = Add (e, b)
"""


@pytest.mark.parametrize(
    ("name", "operators", "found"),
    [
        ("x", ("Relu",), False),
        ("a", ("Relu",), True),
        ("c", ("Relu",), True),
        ("c", ("Cast",), False),
        ("d", ("Cast", "Sqrt"), True),
        ("d", ("Shape",), False),  # Cast changes the element type
        ("y", ("Cast",), True),
        ("y", ("Sqrt",), False),
        ("absent", ("Relu",), False),
    ],
)
def test_finds_operators(name: str, operators: tuple[str, ...], *, found: bool) -> None:
    scope, origins = scope_of(DIAMOND), ValueOrigins()
    assert origins.include(scope, name, operators) == found
    # the order of the questions does not matter
    for each in ("y", "b", "e", "f"):
        origins.include(scope, each, operators)
    assert origins.include(scope, name, operators) == found


@pytest.mark.parametrize(("name", "found"), [("d", True), ("y", True), ("c", False), ("x", False)])
def test_finds_operators_through_nodes_that_change_the_type(name: str, *, found: bool) -> None:
    scope, origins = scope_of(DIAMOND), ValueOrigins()
    assert not origins.include(scope, name, ("Shape",))
    assert origins.include(scope, name, ("Shape",), any_type=True) == found


@pytest.mark.parametrize("first", ["Neg", "Abs"])
def test_examines_each_value_once(first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    examined = []
    examine = value_origins._examine

    def count_and_examine(question: value_origins._Question) -> object:
        examined.append(question)
        return examine(question)

    monkeypatch.setattr(value_origins, "_examine", count_and_examine)
    names = ["x", *(f"v{number}" for number in range(300)), "y"]
    nodes = [f"{names[1]} = {first} (x)"]
    nodes += [f"{name} = Mul ({before}, {before})" for before, name in pairwise(names[1:])]
    scope, origins = scope_of(" ".join(nodes)), ValueOrigins()
    assert {origins.include(scope, name, ("Neg",)) for name in reversed(names[1:])} == {first == "Neg"}
    assert len(examined) <= len(names)
