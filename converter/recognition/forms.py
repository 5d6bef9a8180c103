"""Patterns from the forms that definitions list, see `registry.recognized_forms`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opshift.converter.recognition.patterns import (
    Constant,
    Hole,
    InputRef,
    NodeRef,
    Pattern,
    PatternNode,
    Ref,
)
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.recognized_forms import (
    AttributeTerm,
    FormNode,
    Operand,
    RecognizedForm,
    Term,
    ValueOperand,
    parse_form,
)
from opshift.registry.registry import Registry


def form_patterns(operator: Operator, registry: Registry) -> Iterator[Pattern]:
    """Yield the pattern of each form of an operator."""
    for position, form in enumerate(operator.recognize):
        yield _pattern(position, form, operator.versions[-1], registry)


def _pattern(position: int, form: RecognizedForm, version: OperatorVersion, registry: Registry) -> Pattern:
    names: dict[str, Ref] = {each.name: InputRef(i) for i, each in enumerate(version.inputs)}
    nodes = []
    for index, each in enumerate(parse_form(form.form, version.attributes)):
        slots = _slots(each, names, registry)
        nodes.append(PatternNode(each.op_type, DEFAULT_DOMAIN, slots))
        names.update({name: NodeRef(index, output) for output, name in enumerate(each.outputs)})
    outputs = {
        i: found
        for i, each in enumerate(version.outputs)
        if isinstance(found := names.get(each.name), NodeRef)
    }
    attributes: dict[str, Any] = {
        name: value.encode() if isinstance(value, str) else value for name, value in form.attributes.items()
    }
    return Pattern(
        version.domain, version.name, position, True, form.rounding, attributes, tuple(nodes), outputs, form.ranks
    )


def _slots(node: FormNode, names: Mapping[str, Ref], registry: Registry) -> dict[str, Ref]:
    operator = registry.operator(node.op_type)
    assert operator is not None, node.op_type
    formals = operator.versions[-1].inputs
    slots = {}
    for position, operand in enumerate(node.operands):
        formal = formals[min(position, len(formals) - 1)]
        slot = f"{formal.name}:{position}" if formal.option == "variadic" else formal.name
        slots[slot] = _ref(operand, names)
    return slots | {name: _ref(operand, names) for name, operand in node.named.items()}


def _ref(operand: Operand, names: Mapping[str, Ref]) -> Ref:
    if isinstance(operand, ValueOperand):
        return names[operand.name]
    elements = operand.elements
    return Constant(None if elements is None else tuple(map(_element, elements)))


def _element(term: Term) -> float | int | str | Hole | None:
    return Hole(term.attribute, term.function) if isinstance(term, AttributeTerm) else term
