"""Patterns from the forms (equivalent formulas) in operator definitions, see `recognized_forms`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from opshift.converter.recognition.patterns import (
    AnyValue,
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
    ANY_VALUE,
    AttributeTerm,
    FormNode,
    Operand,
    ParsedForm,
    RecognizedForm,
    Term,
    ValueOperand,
    parse_form,
)
from opshift.registry.registry import Registry


def form_patterns(operator: Operator, registry: Registry) -> Iterator[Pattern]:
    """Yield a pattern for each alternative of the forms of an operator."""
    newest = operator.versions[-1]
    for position, form in enumerate(operator.recognize):
        first = form.since_version or newest.since_version
        known = (version.since_version for version in operator.versions)
        versions = tuple(number for number in known if number >= first)
        for each in parse_form(form.form, newest.attributes):
            yield _pattern(position, form, each, newest, registry)._replace(versions=versions)


def _pattern(
    position: int, form: RecognizedForm, parsed: ParsedForm, version: OperatorVersion, registry: Registry
) -> Pattern:
    names: dict[str, Ref] = {each.name: InputRef(i) for i, each in enumerate(version.inputs)}
    names[ANY_VALUE.name] = AnyValue()
    nodes: list[PatternNode] = []
    for each in parsed.nodes:
        index = len(nodes)
        names.update({name: names[old] for name, old in parsed.aliases.items() if old in names})
        nodes.append(PatternNode(each.op_type, DEFAULT_DOMAIN, _slots(each, names, registry)))
        names.update({name: NodeRef(index, output) for output, name in enumerate(each.outputs)})
    outputs = {
        i: found
        for i, each in enumerate(version.outputs)
        if isinstance(found := names.get(each.name), NodeRef)
    }
    numbers = _reachable(nodes, outputs)
    moved = [
        each._replace(slots={slot: _renumbered(ref, numbers) for slot, ref in each.slots.items()})
        for index, each in enumerate(nodes)
        if index in numbers
    ]
    attributes: dict[str, Any] = {
        name: value.encode() if isinstance(value, str) else value
        for name, value in {**form.attributes, **parsed.implied}.items()
    }
    shapes = tuple(
        (_renumbered(ref, numbers), dims)
        for name, dims in form.shapes.items()
        if isinstance(ref := names.get(name), InputRef | NodeRef)
        and (isinstance(ref, InputRef) or ref.node in numbers)
    )
    return Pattern(
        version.domain, version.name, position, True, form.rounding, attributes, tuple(moved),
        {i: _renumbered(ref, numbers) for i, ref in outputs.items()}, shapes, form.types,
        flattened=tuple(i for i, each in enumerate(version.inputs) if each.name in form.flattened),
    )  # fmt: skip


def _reachable(nodes: list[PatternNode], outputs: Mapping[int, NodeRef]) -> dict[int, int]:
    """Map the position of each node that the first output needs to its position without the other nodes."""
    found: set[int] = set()
    pending = [outputs[0].node]
    while pending:
        index = pending.pop()
        found.add(index)
        pending += [ref.node for ref in nodes[index].slots.values() if isinstance(ref, NodeRef)]
    return {old: new for new, old in enumerate(sorted(found))}


RefT = TypeVar("RefT", bound=Ref)


def _renumbered(ref: RefT, numbers: Mapping[int, int]) -> RefT:
    return ref._replace(node=numbers[ref.node]) if isinstance(ref, NodeRef) else ref


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
    return Constant(None if elements is None else tuple(map(_element, elements)), is_filled=operand.is_filled)


def _element(term: Term) -> float | int | str | Hole | None:
    return Hole(term.attribute, term.function) if isinstance(term, AttributeTerm) else term
