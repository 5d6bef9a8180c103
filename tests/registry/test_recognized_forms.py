"""Forms in definitions: their syntax, alternatives and mistakes."""

from __future__ import annotations

import pytest

from opshift.registry.recognized_forms import (
    AttributeTerm,
    ConstantOperand,
    FormError,
    RecognizedForm,
    ValueOperand,
    form_problems,
    parse_form,
)

ATTRIBUTES = {"alpha": None, "axis": None}


def test_reads_nested_calls() -> None:
    (parsed,) = parse_form("Y = Mul(X, Sigmoid(Mul(X, alpha)))", ATTRIBUTES)
    assert [each.op_type for each in parsed.nodes] == ["Mul", "Sigmoid", "Mul"]
    scaled, _, last = parsed.nodes
    assert scaled.operands == (ValueOperand("X"), ConstantOperand((AttributeTerm("alpha", "same"),)))
    assert last.outputs == ("Y",)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Y = Neg(X)", 1),
        ("Y = Neg(X) | Abs(X)", 2),
        ("a = Neg(X) | Abs(X)\nY = Add(a, X | a)", 4),
        ("Y = Mul(Neg(X) | Abs(X) | X, X)", 3),
    ],
)
def test_combines_alternatives(text: str, count: int) -> None:
    assert len(parse_form(text, ATTRIBUTES)) == count


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("alpha", "same"),
        ("-alpha", "negative"),
        ("1 / alpha", "reciprocal"),
        ("sqrt(alpha)", "root"),
        ("sqrt(1 / alpha)", "root of reciprocal"),
    ],
)
def test_reads_functions_of_attributes(text: str, function: str) -> None:
    (parsed,) = parse_form(f"Y = Mul(X, {text})", ATTRIBUTES)
    assert parsed.nodes[0].operands[1] == ConstantOperand((AttributeTerm("alpha", function),))


def test_reads_implied_attributes() -> None:
    (parsed,) = parse_form("Y = given(Neg(X), alpha=2.0)", ATTRIBUTES)
    assert (parsed.nodes[0].op_type, parsed.implied) == ("Neg", {"alpha": 2.0})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Y = (", "line 1 is not an assignment"),
        ("Neg(X)", "line 1 is not an assignment"),
        ("Y.z = Neg(X)", "line 1 does not assign to names"),
        ("Y = 1 + X", "line 1 does not call an operator"),
        ("Y = Mul(X, alpha ** 2)", "is not a constant"),
        ("Y = Mul(X, 2 / alpha)", "2 / alpha is not a constant"),
        ("Y = Mul(X, sqrt(2 / alpha))", "2 / alpha is not a constant"),
        ("Y = Mul(X, sqrt(-alpha))", r"sqrt\(-alpha\) is not a constant"),
        ("Y = Mul(X, sqrt(2))", r"sqrt\(2\) is not a constant"),
        ("Y = given(alpha=1)", "line 1: `given` needs one value"),
        ("Y = given(X, X, alpha=1)", "line 1: `given` needs one value"),
        ("Y = Mul(X, filled())", "line 1: `filled` needs one constant"),
        ("Y = Mul(X, filled(1, 2))", "line 1: `filled` needs one constant"),
    ],
)
def test_refuses_other_syntax(text: str, message: str) -> None:
    with pytest.raises(FormError, match=message):
        parse_form(text, ATTRIBUTES)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Y = Neg(Z)", "Z is neither an input nor a value of an earlier line"),
        ("y = Neg(X)", "no line assigns to an output"),
        ("Y = Mul(X, -beta)", "beta is not an attribute"),
        ("Y = given(Neg(X), beta=1)", "beta is not an attribute"),
    ],
)
def test_finds_mistakes(text: str, problem: str) -> None:
    form = RecognizedForm(source="test", form=text)
    assert problem in list(form_problems(form, ["X"], ["Y"], ATTRIBUTES))
