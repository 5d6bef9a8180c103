"""Requirements of definitions for ranks, lengths and values of nodes."""

from __future__ import annotations

import pytest
from onnx.parser import parse_model

from opshift import check
from opshift.registry.registry import default_registry
from opshift.registry.requirements import InvalidRequirement, names_of, parse_requirement

HEADER = '<ir_version: 10, opset_import: ["": 21]> g '


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        ("(float[2,3] x) => (int64[n] y) { z = Det(x) y = Shape(z) }", "size(X, -1) is 3, size(X, -2) is 2"),
        ("(float[2,2] x) => (int64[n] y) { z = Det(x) y = Shape(z) }", ""),
        ("(float[1,1,9,9] x) => (int64[n] y) { z = MaxPool<kernel_shape=[3,0]>(x) y = Shape(z) }", "[3, 0]"),
        (
            "(float[1,1,9,9] x) => (int64[n] y) { z = MaxPool<kernel_shape=[3,3],pads=[1]>(x) y = Shape(z) }",
            "length(pads) is 1, rank(X) is 4",
        ),
        ("(float[1,1,9,9] x) => (int64[n] y) { z = MaxPool<kernel_shape=[3,3]>(x) y = Shape(z) }", ""),
        (
            "(float[3] x) => (int64[n] y) <int64[1] k = {4}> { z, i = TopK(x, k) y = Shape(z) }",
            "K is [4], axis is -1, size(X, axis) is 3",
        ),
        (
            "(float[2,3,4] x, int64[2,5] t) => (int64[n] y) "
            "{ z = NegativeLogLikelihoodLoss(x, t) y = Shape(z) }",
            "sizes(input, 2) is [4], sizes(target, 1) is [5]",
        ),
        (
            "(float[2,3,4] x, int64[2,4] t) => (int64[n] y) "
            "{ z = NegativeLogLikelihoodLoss(x, t) y = Shape(z) }",
            "",
        ),
        (
            "(float[2,3] x, int64[2] i) => (int64[n] y) { z = Slice(x, i, i, i) y = Shape(z) }",
            "",
        ),
        (
            "(float[2,3] x) => (int64[n] y) <int64[2] i = {1, -1}> { z = Slice(x, i, i, i) y = Shape(z) }",
            "distinct(axes, rank(data)) is false",
        ),
        ("(float[2] x) => (int64[n] y) { z = Cast<to=99>(x) y = Shape(z) }", "is 99"),
    ],
)
def test_reports_violations(graph: str, reason: str) -> None:
    errors = [str(each) for each in check(parse_model(HEADER + graph)) if each.level == "error"]
    assert [each for each in errors if reason not in each] == []
    assert bool(errors) == bool(reason)


@pytest.mark.parametrize(
    ("bias", "is_valid"), [("[4]", True), ("[1]", True), ("[3]", False), ("[]", True), ("[2, 4]", True)]
)
def test_compares_shapes_that_broadcast(bias: str, is_valid: bool) -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> '
        f"g (float[2,4] x, float{bias} b) => (float[2,4] y) {{ y = com.microsoft.FastGelu(x, b) }}"
    )
    assert any(each.rule == "node.requires" for each in check(parse_model(text))) is not is_valid


@pytest.mark.parametrize("text", ["rank(X", "lambda: 1", "other(X)", "size(X)", "X.y == 1", "rank(X) @ 2"])
def test_refuses_other_expressions(text: str) -> None:
    with pytest.raises(InvalidRequirement):
        parse_requirement(text)


def test_requirements_name_what_versions_have() -> None:
    for operator in default_registry().operators():
        known = set().union(*map(names_of, operator.versions))
        for text in operator.requires:
            assert parse_requirement(text).names <= known, (operator.name, text)
