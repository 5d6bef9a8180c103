"""Equivalent forms of an operator: formulas of other operators that compute its results.

A form is a list of assignments in the syntax of Python, such as

    gate = Sigmoid(Mul(X, alpha))
    Y = Mul(X, gate)

Names are inputs, outputs and attributes of the operator, or values of earlier lines. A number is a constant of
the type of the other operand, and a list a constant of several numbers. In a constant, an attribute may be
negated, inverted or under a square root: `-lambd`, `1 / scale`, `sqrt(scale)` or `sqrt(1 / scale)`. Keywords
are attributes of the nodes, or inputs by name; `...` allows any constant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, NamedTuple, TypeAlias

from opshift.registry.record import Checked, Record
from opshift.registry.steps import Literals


class RecognizedForm(Record):
    """Nodes that compute an operator's results in another way than its function body."""

    source: Annotated[str, Checked(min_length=1)]
    """Where models have this form, such as the exporter that writes it."""
    rounding: str = ""
    """What rounds differently from the definition; empty if the results are equal."""
    attributes: dict[str, Literals] = field(default_factory=dict)
    """Values of attributes that the form implies."""
    ranks: dict[str, int] = field(default_factory=dict)
    """Ranks of inputs for which the form is valid."""
    form: Annotated[str, Checked(min_length=1)]
    """The assignments, see the module."""


class AttributeTerm(NamedTuple):
    """Number that an attribute determines by a function."""

    attribute: str
    function: str


Term: TypeAlias = "float | int | str | AttributeTerm | None"
"""Element of a constant: a number, a text, an attribute, or `None` for any number."""


class ConstantOperand(NamedTuple):
    """Constant: its elements, or `None` for any."""

    elements: tuple[Term, ...] | None


class ValueOperand(NamedTuple):
    """Value by name."""

    name: str


Operand: TypeAlias = "ConstantOperand | ValueOperand"


class FormNode(NamedTuple):
    """Node of a form: its operator, operands by position and by name, and the names of its outputs."""

    op_type: str
    operands: tuple[Operand, ...]
    named: Mapping[str, Operand]
    outputs: tuple[str, ...]


class FormError(ValueError):
    """A form has the wrong syntax."""


def parse_form(text: str, attributes: Mapping[str, object]) -> list[FormNode]:
    """Return the nodes of a form for an operator with these attributes.

    Raises:
        FormError: the text is not a list of assignments as the module describes it.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise FormError(f"line {error.lineno} is not an assignment") from error
    return _Parser(frozenset(attributes)).nodes(tree)


class _Parser:
    def __init__(self, attributes: frozenset[str]) -> None:
        self._attributes = attributes
        self._nodes: list[FormNode] = []

    def nodes(self, tree: ast.Module) -> list[FormNode]:
        for line in tree.body:
            if not isinstance(line, ast.Assign) or len(line.targets) != 1:
                raise FormError(f"line {line.lineno} is not an assignment")
            target = line.targets[0]
            names = [target] if isinstance(target, ast.Name) else getattr(target, "elts", [])
            if not names or not all(isinstance(each, ast.Name) for each in names):
                raise FormError(f"line {line.lineno} does not assign to names")
            self._add(line.value, tuple(each.id for each in names))
        return self._nodes

    def _add(self, value: ast.expr, outputs: tuple[str, ...]) -> None:
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
            raise FormError(f"line {value.lineno} does not call an operator")
        operands = tuple(map(self._operand, value.args))
        named = {each.arg or "": self._operand(each.value) for each in value.keywords}
        self._nodes.append(FormNode(value.func.id, operands, named, outputs))

    def _operand(self, value: ast.expr) -> Operand:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id != "sqrt":
            name = f"{value.func.id} {len(self._nodes)}"
            self._add(value, (name,))
            return ValueOperand(name)
        if isinstance(value, ast.Name) and value.id not in self._attributes:
            return ValueOperand(value.id)
        if isinstance(value, ast.Constant) and value.value is ...:
            return ConstantOperand(None)
        elements = value.elts if isinstance(value, ast.List) else [value]
        return ConstantOperand(tuple(map(_term, elements)))


def _term(value: ast.expr) -> Term:
    match value:
        case ast.Constant(value=bool() | float() | int() | str() as number):
            return number
        case ast.Constant(value=each) if each is ...:
            return None
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float() | int() as number)):
            return -number
        case ast.Name(id=name):
            return AttributeTerm(name, "same")
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id=name)):
            return AttributeTerm(name, "negative")
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Div(), right=ast.Name(id=name)):
            return AttributeTerm(name, "reciprocal")
        case ast.Call(func=ast.Name(id="sqrt"), args=[ast.Name(id=name)]):
            return AttributeTerm(name, "root")
        case ast.Call(func=ast.Name(id="sqrt"), args=[ast.BinOp(op=ast.Div(), right=ast.Name(id=name))]):
            return AttributeTerm(name, "root of reciprocal")
    raise FormError(f"{ast.unparse(value)} is not a constant")


def form_problems(
    form: RecognizedForm, inputs: Mapping[str, object], outputs: Mapping[str, object], attributes: Mapping[str, object]
) -> Iterator[str]:
    """Yield the mistakes in a form of an operator with these inputs, outputs and attributes."""
    try:
        nodes = parse_form(form.form, attributes)
    except FormError as error:
        yield str(error)
        return
    known = set(inputs)
    for node in nodes:
        for operand in (*node.operands, *node.named.values()):
            if isinstance(operand, ValueOperand) and operand.name not in known:
                yield f"{operand.name} is neither an input nor a value of an earlier line"
            if isinstance(operand, ConstantOperand):
                terms = [each for each in operand.elements or () if isinstance(each, AttributeTerm)]
                yield from (
                    f"{each.attribute} is not an attribute" for each in terms if each.attribute not in attributes
                )
        known.update(node.outputs)
    if not known.intersection(outputs):
        yield "no line assigns to an output"
    for kind, names, given in (("attribute", attributes, form.attributes), ("input", inputs, form.ranks)):
        yield from (f"{name} is not an {kind}" for name in given if name not in names)

