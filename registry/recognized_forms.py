"""Recognized forms of an operator: formulas of other operators that compute its results.

A form is a list of assignments in the syntax of Python, such as

    gate = Sigmoid(Mul(X, alpha) | X)
    Y = Mul(X, gate)

Names are inputs, outputs and attributes of the operator, or values of earlier lines. A number is a constant
of the type of the other operand, and a list is a constant of several numbers. In a constant, an attribute may
be negated, inverted or under a square root: `-lambd`, `1 / scale`, `sqrt(scale)` or `sqrt(1 / scale)`.
Keywords are attributes of the nodes, or inputs by name; `...` is any value. `|` separates alternatives; the
alternative `given(value, scale=1.0)` implies that the attribute `scale` of the operator is 1.0. `filled(1.0)`
is a constant whose elements are all 1.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from itertools import product
from typing import Annotated, NamedTuple, TypeAlias

from opshift.registry.record import Checked, Record
from opshift.registry.steps import Literals


class RecognizedForm(Record):
    """Nodes that compute an operator's results in another way than its function body."""

    source: Annotated[str, Checked(min_length=1)]
    """Where models have this form, such as the exporter that writes it."""
    since_version: Annotated[int, Checked(ge=0, strict=True)] = 0
    """The oldest operator version with the same results as the form; 0 for only the newest version."""
    rounding: str = ""
    """The operation that rounds differently from the definition; empty if the results are equal."""
    attributes: dict[str, Literals] = field(default_factory=dict)
    """Values of attributes that the form implies."""
    shapes: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    """Shapes of values for which the form is valid: equal letters are equal sizes, `_` is any size.

    The name of an attribute is the size that this attribute sets, and `A * B` is a product. A dimension with
    `?` may also be 1 or missing. The shapes must determine the shape of the result.
    """
    flattened: tuple[str, ...] = ()
    """Constant inputs that are 1-D in the operator, and may have a different shape in the form."""
    types: tuple[str, ...] = ()
    """Element types of the first input for which the form is valid; empty for all."""
    form: Annotated[str, Checked(min_length=1)]
    """The assignments, in the syntax that `registry/recognized_forms.py` describes."""

    def __hash__(self) -> int:
        return hash((self.source, self.form))


class NodeExample(Record):
    """Valid node of an operator; patterns are derived from expansions of the node with varied attributes."""

    inputs: dict[str, tuple[int | str, ...]]
    """Dimensions of each input: numbers, names of sizes, products such as `H * E`, sums such as `P + S`."""
    attributes: dict[str, Literals] = field(default_factory=dict)
    """Attributes; the name of a size represents the size.

    For an attribute that is a number, a list has the two values for which the node is expanded.
    """
    types: dict[str, str] = field(default_factory=dict)
    """Element types of inputs that differ from the first allowed one, such as `bool`."""

    def __hash__(self) -> int:
        return hash(tuple(self.inputs.items()))


class AttributeTerm(NamedTuple):
    """Function of an attribute: `same`, `negative`, `reciprocal`, `root` or `root of reciprocal`."""

    attribute: str
    function: str


Term: TypeAlias = "float | int | str | AttributeTerm | None"
"""Element of a constant: a number, a text, an attribute, or `None` for any number."""


class ConstantOperand(NamedTuple):
    """Constant with these elements (`None`: any); if `is_filled`, of any size, and all elements are equal."""

    elements: tuple[Term, ...] | None
    is_filled: bool = False


class ValueOperand(NamedTuple):
    """Operand that is not a constant: the name of an input, or of a value of an earlier line."""

    name: str


Operand: TypeAlias = "ConstantOperand | ValueOperand"

ANY_VALUE = ValueOperand("...")
"""Operand that may have any value, such as the shape input of a Reshape to a known shape."""


class FormNode(NamedTuple):
    """Node of a form: its operator, operands by position and by name, and the names of its outputs."""

    op_type: str
    operands: tuple[Operand, ...]
    named: Mapping[str, Operand]
    outputs: tuple[str, ...]


class FormError(ValueError):
    """A form has the wrong syntax."""


class ParsedForm(NamedTuple):
    """Nodes of one alternative of a form; `aliases` maps `Y` to `X` for a line `Y = X`."""

    nodes: tuple[FormNode, ...]
    aliases: Mapping[str, str]
    implied: Mapping[str, Term]
    """Attributes of the operator that the alternative implies."""


def parse_form(text: str, attributes: Mapping[str, object]) -> list[ParsedForm]:
    """Return the alternatives of a form for an operator with these attributes.

    Raises:
        FormError: the text is not a list of assignments as the module describes it.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise FormError(f"line {error.lineno} is not an assignment") from error
    lines: list[list[ast.Assign]] = []
    for line in tree.body:
        if not isinstance(line, ast.Assign) or len(line.targets) != 1:
            raise FormError(f"line {line.lineno} is not an assignment")
        lines.append(
            [ast.Assign(line.targets, value, lineno=line.lineno) for value in _alternatives(line.value)]
        )
    return [_Parser(frozenset(attributes)).parsed(each) for each in product(*lines)]


def _alternatives(value: ast.expr) -> list[ast.expr]:
    """Return the alternatives of an expression with `|`: `f(a)` and `f(b)` for `f(a | b)`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        return [*_alternatives(value.left), *_alternatives(value.right)]
    if not isinstance(value, ast.Call):
        return [value]
    operands = product(*map(_alternatives, value.args))
    return [ast.Call(value.func, [*each], value.keywords, lineno=value.lineno) for each in operands]


class _Parser:
    """Parser of the assignments of one form; `attributes` are the names of the operator's attributes."""

    def __init__(self, attributes: frozenset[str]) -> None:
        self._attributes = attributes
        self._nodes: list[FormNode] = []
        self._implied: dict[str, Term] = {}

    def parsed(self, lines: Iterable[ast.Assign]) -> ParsedForm:
        """Return the nodes and outputs that the assignments of a form describe, or raise FormError."""
        aliases: dict[str, str] = {}
        for line in lines:
            target = line.targets[0]
            names = [target] if isinstance(target, ast.Name) else getattr(target, "elts", [])
            if not names or not all(isinstance(each, ast.Name) for each in names):
                raise FormError(f"line {line.lineno} does not assign to names")
            if isinstance(line.value, ast.Name):
                aliases[names[0].id] = line.value.id
            else:
                self._add_node(line.value, tuple(each.id for each in names))
        return ParsedForm(tuple(self._nodes), aliases, self._implied)

    def _add_node(self, value: ast.expr, outputs: tuple[str, ...]) -> None:
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
            raise FormError(f"line {value.lineno} does not call an operator")
        if value.func.id == "given":
            if len(value.args) != 1:
                raise FormError(f"line {value.lineno}: `given` needs one value before its keywords")
            self._implied |= {each.arg or "": _parse_term(each.value) for each in value.keywords}
            self._add_node(value.args[0], outputs)
            return
        operands = tuple(map(self._parse_operand, value.args))
        named = {each.arg or "": self._parse_operand(each.value) for each in value.keywords}
        self._nodes.append(FormNode(value.func.id, operands, named, outputs))

    def _parse_operand(self, value: ast.expr) -> Operand:
        function = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
        if isinstance(value, ast.Call) and function == "filled":
            if len(value.args) != 1 or value.keywords:
                raise FormError(f"line {value.lineno}: `filled` needs one constant")
            return ConstantOperand((_parse_term(value.args[0]),), is_filled=True)
        if isinstance(value, ast.Call) and function and function != "sqrt":
            name = f"{function} {len(self._nodes)}"
            self._add_node(value, (name,))
            return ValueOperand(name)
        if isinstance(value, ast.Name) and value.id not in self._attributes:
            return ValueOperand(value.id)
        if isinstance(value, ast.Constant) and value.value is ...:
            return ANY_VALUE
        elements = value.elts if isinstance(value, ast.List) else [value]
        return ConstantOperand(tuple(map(_parse_term, elements)))


def _parse_term(value: ast.expr) -> Term:
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
        case ast.Call(func=ast.Name(id="sqrt"), args=[operand], keywords=[]):
            match _parse_term(operand):
                case AttributeTerm(name, "same"):
                    return AttributeTerm(name, "root")
                case AttributeTerm(name, "reciprocal"):
                    return AttributeTerm(name, "root of reciprocal")
    raise FormError(f"{ast.unparse(value)} is not a constant")


def form_problems(
    form: RecognizedForm, inputs: Collection[str], outputs: Collection[str], attributes: Mapping[str, object]
) -> Iterator[str]:
    """Yield the mistakes in a form of an operator with these inputs, outputs and attributes."""
    try:
        alternatives = parse_form(form.form, attributes)
    except FormError as error:
        yield str(error)
        return
    for alternative in alternatives:
        yield from _problems_of(alternative, set(inputs), outputs, attributes)
    yield from (f"{name} is not an attribute" for name in form.attributes if name not in attributes)


def _problems_of(
    parsed: ParsedForm, known: set[str], outputs: Collection[str], attributes: Mapping[str, object]
) -> Iterator[str]:
    yield from (f"{each} is not an attribute" for each in parsed.implied if each not in attributes)
    known = {*known, ANY_VALUE.name, *parsed.aliases}
    for node in parsed.nodes:
        for operand in (*node.operands, *node.named.values()):
            if isinstance(operand, ValueOperand) and operand.name not in known:
                yield f"{operand.name} is neither an input nor a value of an earlier line"
            if isinstance(operand, ConstantOperand):
                terms = [each for each in operand.elements or () if isinstance(each, AttributeTerm)]
                unknown = [each.attribute for each in terms if each.attribute not in attributes]
                yield from (f"{each} is not an attribute" for each in unknown)
        known.update(node.outputs)
    if not known.intersection(outputs):
        yield "no line assigns to an output"
