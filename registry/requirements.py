"""Parse and evaluate requirements, the conditions of a definition on ranks, lengths, types and values.

A requirement is an expression in the syntax of Python: `rank(X) >= 3`, `length(pads) == 2 * rank(X) - 4`. A
name is the value of an attribute or of a constant input. A comparison with a list, except `in`, must hold
for every element. A comparison with an unknown operand is unknown; a node violates a requirement only if the
requirement is known to be false.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache, partial
from itertools import pairwise, repeat, zip_longest
from typing import Final, NamedTuple, cast

from opshift.model.element_types import BY_NAME, BY_NUMBER, element_bits, integer_range
from opshift.registry.models import OperatorVersion
from opshift.registry.shapes.dims import product
from opshift.registry.shapes.shape_context import InvalidFlag, ShapeContext

Scalar = int | float | str | None

Value = Scalar | tuple[Scalar, ...]

Evaluate = Callable[[ShapeContext], Value]


MAX_CACHED: Final = 4096
"""Maximum number of cached versions: checks of proposals load new copies of versions repeatedly."""


class InvalidRequirement(ValueError):
    """A requirement is not an expression in the syntax that the module docstring describes."""


class Requirement(NamedTuple):
    """A parsed requirement.

    Attributes:
        text: the expression.
        names: the attributes and inputs that an operator version needs for the requirement to apply.
        evaluate: returns whether the requirement holds for a node; `None` if unknown.
        terms: functions that return the compared values, by text such as `rank(X)`.
    """

    text: str
    names: frozenset[str]
    evaluate: Evaluate
    terms: Mapping[str, Evaluate]

    def problem(self, node: ShapeContext) -> str | None:
        """Return a message if the node violates the requirement, or else `None`."""
        try:
            if self.evaluate(node) is not False:
                return None
            values = {text: term(node) for text, term in self.terms.items()}
        except InvalidFlag:
            return None  # another rule reports the invalid attribute value
        found = ", ".join(
            f"{text} is {_value_text(each)}" for text, each in values.items() if each is not None
        )
        return f"requires {self.text}; {found}" if found else f"requires {self.text}"


def _value_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(list(value)) if isinstance(value, tuple) else repr(value)


def requirement_problems(node: ShapeContext) -> Iterator[str]:
    """Yield a message for each requirement that a node violates."""
    for each in requirements_of(node.version):
        problem = each.problem(node)
        if problem:
            yield problem


@lru_cache(maxsize=MAX_CACHED)
def requirements_of(version: OperatorVersion) -> tuple[Requirement, ...]:
    """Return the requirements of a version, except those with names that the version does not have."""
    known = names_of(version)
    parsed = map(parse_requirement, version.requires)
    return tuple(each for each in parsed if each.names <= known)


def names_of(version: OperatorVersion) -> frozenset[str]:
    """Return the names of the attributes and inputs of a version, which its requirements may use."""
    return frozenset((*version.attributes, *(each.name for each in version.inputs)))


@cache
def parse_requirement(text: str) -> Requirement:
    """Return the requirement that a text expresses.

    Raises:
        InvalidRequirement: the text is not an expression in the syntax of the module docstring.
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise InvalidRequirement(f"is not an expression: {error.msg}") from None
    names: set[str] = set()
    terms: dict[str, Evaluate] = {}
    return Requirement(text, frozenset(names), _compiled(tree, names, terms), terms)._replace(
        names=frozenset(names)
    )


def _compiled(tree: ast.expr, names: set[str], terms: dict[str, Evaluate]) -> Evaluate:
    """Return a function that evaluates an expression; add its names and terms to `names` and `terms`."""
    match tree:
        case ast.Constant(value=int() | float() | str() as value):
            return lambda node: value
        case ast.Tuple(elts=elements):
            parts = [_compiled(each, names, terms) for each in elements]
            return lambda node: tuple(_scalar_of(part(node)) for part in parts)
        case ast.Name(id=name):
            names.add(name)
            terms[name] = _value_of(name)
            return terms[name]
        case ast.Call(func=ast.Name(id=function), args=[ast.Name(id=name), *rest], keywords=[]):
            return _compiled_call(
                tree, function, name, [_compiled(each, names, terms) for each in rest], names, terms
            )
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _compiled(operand, names, terms)
            return lambda node: _apply_arithmetic(operator.sub, 0, inner(node))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _compiled(operand, names, terms)
            return lambda node: _negated(inner(node))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            first, second = _compiled(left, names, terms), _compiled(right, names, terms)
            function_of = _ARITHMETIC[type(op)]
            return lambda node: _apply_arithmetic(function_of, first(node), second(node))
        case ast.BoolOp(op=op, values=values):
            parts = [_compiled(each, names, terms) for each in values]
            decisive = isinstance(op, ast.Or)
            return lambda node: _joined((part(node) for part in parts), decisive=decisive)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            type(op) in _COMPARISONS for op in ops
        ):
            parts = [_compiled(each, names, terms) for each in (left, *others)]
            comparisons = [_COMPARISONS[type(op)] for op in ops]
            return lambda node: _evaluate_comparisons([part(node) for part in parts], comparisons)
    raise InvalidRequirement(
        f"{ast.unparse(tree)!r} is not a comparison, a number, a name or a known function"
    )


def _compiled_call(
    tree: ast.expr,
    function: str,
    name: str,
    rest: list[Evaluate],
    names: set[str],
    terms: dict[str, Evaluate],
) -> Evaluate:
    if function == "present" and not rest:
        term = _is_present(name)  # Not in `names`: for a version without the parameter, the result is false.
    elif function in _FUNCTIONS and not rest:
        names.add(name)
        term = _FUNCTIONS[function](name)
    elif function in _FUNCTIONS_OF_TWO and len(rest) == 1:
        names.add(name)
        term = _FUNCTIONS_OF_TWO[function](name, rest[0])
    else:
        known = ", ".join((*_FUNCTIONS, "present", *(f"{each} (2 arguments)" for each in _FUNCTIONS_OF_TWO)))
        raise InvalidRequirement(f"{ast.unparse(tree)!r} is not a call of one of the functions {known}")
    terms[ast.unparse(tree)] = term
    return term


def _value_of(name: str) -> Evaluate:
    def evaluate(node: ShapeContext) -> Value:
        if name in node.version.attributes:
            return _plain_value(node.attribute(name))
        position, _ = node.version.input_named(name) or (len(node.inputs), None)
        elements = node.constant(position) if position < len(node.inputs) else None
        return None if elements is None else _plain_value(elements)

    return evaluate


def _plain_value(value: object) -> Value:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, tuple | list):
        return tuple(_scalar_of(_plain_value(each)) for each in value)
    return value if isinstance(value, int | float | str) else None


def _scalar_of(value: Value) -> Scalar:
    return None if isinstance(value, tuple) else value


def _per_input(name: str, measure: Callable[[ShapeContext, int], int | None]) -> Evaluate:
    """Return a function that applies `measure` to an input, or to each value of a variadic input."""

    def evaluate(node: ShapeContext) -> Value:
        position, parameter = node.version.input_named(name) or (len(node.inputs), None)
        if parameter is not None and parameter.option == "variadic":
            return tuple(measure(node, each) for each in range(position, len(node.inputs)))
        return measure(node, position)

    return evaluate


def _rank_of(name: str) -> Evaluate:
    def rank(node: ShapeContext, position: int) -> int | None:
        shape = node.shape(position)
        return None if shape is None else len(shape)

    return _per_input(name, rank)


def _shape_of(name: str) -> Evaluate:
    def evaluate(node: ShapeContext) -> Value:
        position, _ = node.version.input_named(name) or (len(node.inputs), None)
        return node.shape(position)

    return evaluate


def _element_type_of(name: str) -> Evaluate:
    """Return a function for the element type of an input, or the type that an attribute like `to` names."""

    def evaluate(node: ShapeContext) -> Value:
        if name in node.version.attributes:
            number = node.attribute(name)
            kind = BY_NUMBER.get(number) if isinstance(number, int) else None
            return None if kind is None else kind.name
        position, _ = node.version.input_named(name) or (len(node.inputs), None)
        found = node.element_type(position)
        return None if found is None else found.rpartition("(")[2].rstrip(")")

    return evaluate


def _bits_of(name: str) -> Evaluate:
    element_type = _element_type_of(name)

    def evaluate(node: ShapeContext) -> Value:
        kind = BY_NAME.get(str(element_type(node)))
        return element_bits(kind) or None if kind is not None else None

    return evaluate


def _limit_of(name: str, *, is_highest: bool) -> Evaluate:
    """Return a function for the lowest or the highest number of an integer type."""
    element_type = _element_type_of(name)

    def evaluate(node: ShapeContext) -> Value:
        numbers = integer_range(str(element_type(node)))
        return None if numbers is None else numbers[-1 if is_highest else 0]

    return evaluate


def _count_of(name: str) -> Evaluate:
    def count(node: ShapeContext, position: int) -> int | None:
        shape = node.shape(position)
        return None if shape is None else product(shape)

    return _per_input(name, count)


def _length_of(name: str) -> Evaluate:
    def evaluate(node: ShapeContext) -> Value:
        if name in node.version.attributes:
            value = node.attribute(name)
            if isinstance(value, tuple | list | range):
                return len(value)
            dims = getattr(value, "dims", None)  # the attribute is a tensor, not a list
            return None if dims is None else product(tuple(dims))
        position, parameter = node.version.input_named(name) or (len(node.inputs), None)
        if parameter is not None and parameter.option == "variadic":
            return len(node.inputs) - position
        return node.input_length(position)

    return evaluate


def _sum_of(name: str) -> Evaluate:
    value = _value_of(name)

    def evaluate(node: ShapeContext) -> Value:
        elements = value(node)
        if not isinstance(elements, tuple):
            return None
        numbers = [each for each in elements if isinstance(each, int | float)]
        return sum(numbers) if len(numbers) == len(elements) else None

    return evaluate


def _axes_test(holds: Callable[[list[int]], bool]) -> Callable[[str, Evaluate], Evaluate]:
    """Return a compiler of calls such as `distinct(axes, rank)`; `holds` gets the known, non-negative axes.

    Calls with fewer than two axes are true.
    """

    def compile_call(name: str, rank: Evaluate) -> Evaluate:
        value = _value_of(name)

        def evaluate(node: ShapeContext) -> Value:
            elements, modulus = value(node), rank(node)
            if not isinstance(elements, tuple):
                return None
            if len(elements) < 2:
                return True
            if not isinstance(modulus, int):
                return None
            axes = [each for each in elements if isinstance(each, int)]
            return holds([each + modulus if each < 0 else each for each in axes])

        return evaluate

    return compile_call


def _broadcasts(name: str, other: Evaluate) -> Evaluate:
    """Return a function that checks whether an input's shape and another shape may broadcast, as in NumPy."""
    first = _shape_of(name)

    def evaluate(node: ShapeContext) -> Value:
        shapes = [first(node), other(node)]
        known = [shape[::-1] for shape in shapes if isinstance(shape, tuple)]
        if len(known) < 2:
            return None
        pairs = zip_longest(*known, fillvalue=1)
        return all(len({*pair} - {None, 1}) < 2 for pair in pairs)

    return evaluate


def _is_present(name: str) -> Evaluate:
    def evaluate(node: ShapeContext) -> Value:
        if name in node.version.attributes:
            return node.attribute(name) is not None
        if named := node.version.input_named(name):
            return node.has_input(named[0])
        position, _ = node.version.output_named(name) or (-1, None)
        return node.has_output(position)

    return evaluate


def _size_of(name: str, axis: Evaluate) -> Evaluate:
    def evaluate(node: ShapeContext) -> Value:
        position, _ = node.version.input_named(name) or (len(node.inputs), None)
        shape, index = node.shape(position), axis(node)
        if shape is None or not isinstance(index, int) or not -len(shape) <= index < len(shape):
            return None
        return shape[index]

    return evaluate


def _sizes_from(name: str, axis: Evaluate) -> Evaluate:
    shape_of = _shape_of(name)

    def evaluate(node: ShapeContext) -> Value:
        shape, start = shape_of(node), axis(node)
        return shape[start:] if isinstance(shape, tuple) and isinstance(start, int) else None

    return evaluate


_FUNCTIONS: Final[Mapping[str, Callable[[str], Evaluate]]] = {
    "element_type": _element_type_of,
    "bits": _bits_of,
    "lowest": partial(_limit_of, is_highest=False),
    "highest": partial(_limit_of, is_highest=True),
    "rank": _rank_of,
    "shape": _shape_of,
    "length": _length_of,
    "count": _count_of,
    "sum": _sum_of,
}
"""Functions with one argument, the name of an input or attribute.

`element_type`, its `bits`, its `lowest` and `highest` integer, `rank`, `shape`, `count` (of elements) of an
input; `length`, `sum` of a list.
"""

_FUNCTIONS_OF_TWO: Final[Mapping[str, Callable[[str, Evaluate], Evaluate]]] = {
    "size": _size_of,
    "sizes": _sizes_from,
    "distinct": _axes_test(lambda axes: len(set(axes)) == len(axes)),
    "ascending": _axes_test(lambda axes: axes == sorted(axes)),
    "broadcasts": _broadcasts,
}
"""Functions with two arguments: the name of an input or attribute, and a value.

`size(X, axis)`, `sizes(X, axis)` from an axis to the last one, `distinct(axes, rank)` for a list of axes
without repetition, `ascending(axes, rank)` for sorted axes, and `broadcasts(A, shape(B))`.
"""

_ARITHMETIC: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Value, Value], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: lambda first, second: first < second,  # type: ignore[operator]
    ast.LtE: lambda first, second: first <= second,  # type: ignore[operator]
    ast.Gt: lambda first, second: first > second,  # type: ignore[operator]
    ast.GtE: lambda first, second: first >= second,  # type: ignore[operator]
    ast.In: lambda first, second: first in second,  # type: ignore[operator]
    ast.NotIn: lambda first, second: first not in second,  # type: ignore[operator]
}

_MEMBERSHIP: Final = (_COMPARISONS[ast.In], _COMPARISONS[ast.NotIn])


def _apply_arithmetic(function: Callable[[float, float], float], first: Value, second: Value) -> Value:
    numbers = [each[0] if isinstance(each, tuple) and len(each) == 1 else each for each in (first, second)]
    if not all(isinstance(each, int | float) for each in numbers):
        return None
    try:
        return function(*numbers)  # type: ignore[arg-type]
    except (ZeroDivisionError, OverflowError):
        return None


def _evaluate_comparisons(
    values: list[Value], comparisons: list[Callable[[Value, Value], bool]]
) -> bool | None:
    results = (
        _compare_values(function, *pair) for function, pair in zip(comparisons, pairwise(values), strict=True)
    )
    return _joined(results, decisive=False)


def _compare_values(function: Callable[[Value, Value], bool], first: Value, second: Value) -> bool | None:
    if first is None or second is None:
        return None
    lists = [] if function in _MEMBERSHIP else [second]
    lists = [each for each in (first, *lists) if isinstance(each, tuple)]
    if not lists:
        return _compare_scalars(function, first, second)
    firsts = first if isinstance(first, tuple) else repeat(first)
    seconds = second if len(lists) == 2 or second is lists[0] else repeat(second)
    pairs = zip(firsts, cast("Iterable[Value]", seconds), strict=False)
    return _joined((_compare_scalars(function, *pair) for pair in pairs), decisive=False)


def _compare_scalars(function: Callable[[Value, Value], bool], first: Value, second: Value) -> bool | None:
    if first is None or second is None:
        return None
    if isinstance(second, tuple) and first not in second and None in second:
        return None
    try:
        return function(first, second)
    except TypeError:  # another rule reports a value of a wrong type
        return None


def _negated(value: Value) -> bool | None:
    return None if value is None else not value


def _joined(values: Iterator[Value], *, decisive: bool) -> bool | None:
    """Return the `and` of values, or the `or` if `decisive` is true; `None` if unknown values matter."""
    is_known = True
    for value in values:
        if value is None:
            is_known = False
        elif bool(value) is decisive:
            return decisive
    return (not decisive) if is_known else None
