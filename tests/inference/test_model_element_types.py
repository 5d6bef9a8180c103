"""Element types of a whole model: from declarations, operators and the attributes of nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from onnx import ModelProto, parser

from opshift.inference import model_element_types
from opshift.inference.model_element_types import ElementTypes
from opshift.inference.scope import Scope

ScopeFactory = Callable[..., Scope]
ALL = {"float", "float16", "double", "int64", "int32", "bool", "string"}

MODEL = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (float[N] y) <double w = {1}> {
    size = Shape (x)
    half = Cast <to = 10> (x)
    number = Constant <value = int32[1] {1}> ()
    y = Cast <to = 1> (half)
}
"""


def types_of(model: ModelProto, scope_of: ScopeFactory) -> ElementTypes:
    operators = {(node.domain, node.op_type) for node in model.graph.node}
    return ElementTypes([scope_of(model.graph, model.opset_import)], operators)


def test_finds_types_of_declarations_operators_and_attributes(scope_of: ScopeFactory) -> None:
    types = types_of(parser.parse_model(MODEL), scope_of)
    assert types.among(ALL, len(ALL)) == {"float", "double", "int64", "float16", "int32"}


@pytest.mark.parametrize(
    ("asked", "expected"), [({"float16"}, {"float16"}), ({"int32"}, {"int32"}), ({"bool"}, set())]
)
def test_reads_nodes_for_types_that_only_they_have(
    scope_of: ScopeFactory, asked: set[str], expected: set[str]
) -> None:
    types = types_of(parser.parse_model(MODEL), scope_of)
    assert types.among({"float"}, 1) == {"float"}
    assert types.among(asked, 1) == expected
    assert types.among(asked, 1) == expected  # also after the search


def test_reads_no_node_if_declarations_and_operators_answer(
    scope_of: ScopeFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(model_element_types, "_nodes_of")
    types = types_of(parser.parse_model(MODEL), scope_of)
    assert types.among({"float", "int64", "int32"}, 2) == {"float", "int64"}


def test_finds_types_of_removed_operators(scope_of: ScopeFactory) -> None:
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y) '
    types = types_of(parser.parse_model(text + "{ y = ConstantFill <dtype = 7> (x) }"), scope_of)
    assert types.among(ALL, len(ALL)) == {"float", "int64"}


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("seq(float16[N]) s", {"float", "float16"}),
        ("optional(seq(bool[N])) s", {"float", "bool"}),
        ("map(string, double[N]) s", {"float", "double"}),
    ],
)
def test_finds_types_within_other_types(scope_of: ScopeFactory, declared: str, expected: set[str]) -> None:
    text = f'<ir_version: 10, opset_import: ["" : 21]> g (float[N] x, {declared}) => (float[N] y) '
    types = types_of(parser.parse_model(text + "{ y = Relu (x) }"), scope_of)
    assert types.among(ALL, len(ALL)) >= expected


def test_distinguishes_nodes_by_lists(scope_of: ScopeFactory) -> None:
    attributes = 'keys_strings = ["k"], values_int64s = [1], values_floats = [0.5]'
    model = parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 2]>
        g (string[N] x) => (double[N] y) {{
            a = ai.onnx.ml.LabelEncoder <{attributes}> (x)
            y = ai.onnx.ml.LabelEncoder <{attributes}> (x)
        }}
    """)
    del model.graph.node[0].attribute[2].floats[:]
    del model.graph.node[1].attribute[1].ints[:]
    found = types_of(model, scope_of)
    assert found.among({"int64", "float"}, 2) == {"int64", "float"}
