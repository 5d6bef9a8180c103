"""What a function body has to keep to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opshift.converter.convert import convert_version
from opshift.proposals.draft import Defined
from opshift.proposals.evidence.models import body_model
from opshift.proposals.findings import Level
from opshift.proposals.folder import OPERATOR
from opshift.proposals.ran import Ran
from opshift.proposals.rules.table import Flaw, rule
from opshift.proposals.values import is_of
from opshift.registry.bodies import body_flaws
from opshift.registry.errors import OpshiftError, ResolveError
from opshift.registry.function_bodies import BodyNode, FromAttribute
from opshift.registry.models import Attribute, OperatorVersion

FUNCTIONS = "ONNX, IR specification: functions"


@rule(
    "body.names",
    Level.ERROR,
    source=FUNCTIONS,
    remedy="name inputs, outputs and attributes as the operator does",
)
def names_are_given(draft: Defined) -> Iterator[Flaw]:
    """The body reads what is there, makes every output once, and declares what it imports."""
    for flaw in body_flaws(draft.version):
        keys = () if flaw.node is None else ("nodes", flaw.node)
        yield Flaw(flaw.reason, OPERATOR, _body(draft, *keys))


@rule(
    "body.operators", Level.ERROR, source=FUNCTIONS, remedy="use operators that the opset has, as it has them"
)
def operators_exist(draft: Defined) -> Iterator[Flaw]:
    """Every node of the body is an operator of the opset that the body states, and not deprecated there."""
    for position, node, operator in _resolved(draft):
        keys = _body(draft, "nodes", position)
        if isinstance(operator, ResolveError):
            yield Flaw(f"{operator.reason}", OPERATOR, keys, operator.remedy)
            continue
        yield from (Flaw(reason, OPERATOR, keys) for reason in _misfits(node, operator))


@rule("body.attributes", Level.ERROR, source=FUNCTIONS, remedy="give each attribute a value of its type")
def attributes_have_their_types(draft: Defined) -> Iterator[Flaw]:
    """Attributes of the body's nodes exist, are all there, and have values of their types."""
    for position, node, operator in _resolved(draft):
        if isinstance(operator, ResolveError):
            continue
        keys = _body(draft, "nodes", position)
        for name in operator.required_attributes:
            if name not in node.attributes:
                yield Flaw(f"{node.op_type} requires {name!r}", OPERATOR, keys)
        for name, value in node.attributes.items():
            reason = _wrong(name, value, operator.attributes.get(name), draft.version)
            if reason:
                yield Flaw(f"{node.op_type}: {reason}", OPERATOR, (*keys, "attributes", name))


@rule("body.opset", Level.ERROR, source="docs/proposals.md", remedy="write it for the opset before")
def body_is_older(draft: Defined) -> Iterator[Flaw]:
    """The body is written for opsets before the one that the operator enters.

    Then a model can be taken to them.
    """
    body = draft.version.body
    stated = body.opset_imports.get(draft.operator.domain, 0) if body else 0
    if stated >= draft.version.since_version:
        keys = _body(draft, "opset_imports", draft.operator.domain)
        yield Flaw(f"the body is written for opset {stated} itself", OPERATOR, keys)


@rule(
    "body.agrees",
    Level.ERROR,
    source="ONNX, Adding New Operator: function body",
    remedy="correct the body, or the reference",
)
def body_agrees_with_the_reference(draft: Ran) -> Iterator[Flaw]:
    """The body gives what the reference gives, on every example, in every element type.

    Of a function there are two definitions; a runtime may take either.
    """
    for each in draft.evidence.bodies:
        if each.verdict == "differs":
            yield Flaw(f"{each.case.name}: {each.reason}", OPERATOR, _body(draft))


@rule("body.runs", Level.ERROR, source="docs/proposals.md", remedy="add an example that a runtime can run")
def body_runs(draft: Ran) -> Iterator[Flaw]:
    """Some example runs in the body, in a runtime that is installed."""
    reasons = [each.reason for each in draft.evidence.bodies if each.verdict == "not run"]
    if reasons and len(reasons) == len(draft.evidence.bodies):
        yield Flaw(f"no runtime ran the body: {reasons[0]}", OPERATOR, _body(draft))


@rule(
    "body.types",
    Level.WARNING,
    source="docs/proposals.md",
    remedy="compare it by other means, or leave the type to a later version",
)
def body_runs_in_every_type(draft: Ran) -> Iterator[Flaw]:
    """Some runtime that is installed runs the body in every element type.

    Where none does, nothing shows that the body agrees with the reference.
    """
    ran = {each.case.retyped for each in draft.evidence.bodies if each.verdict != "not run"}
    left = {each.case.retyped: each.reason for each in draft.evidence.bodies if each.case.retyped not in ran}
    for element_type, reason in left.items() if ran else ():
        yield Flaw(f"{element_type or 'the stated type'}: {reason}", OPERATOR, _body(draft))


@rule(
    "body.opsets",
    Level.WARNING,
    source="ONNX, IR specification: functions",
    remedy="use operators that the converter can bring to newer opsets",
)
def body_moves_with_the_opsets(draft: Ran) -> Iterator[Flaw]:
    """The body can be brought from the opsets that it is written for to the newest ones.

    A function outlives the opset that its body was written for.
    """
    first = next((each for each in draft.evidence.outcomes if each.outputs and each.case.version.body), None)
    if first is None or first.outputs is None or any(body_flaws(draft.version)):
        return
    try:
        model = body_model(first.case, first.outputs, draft.registry)
        newest = {each.domain: draft.registry.newest_opset(each.domain) for each in model.opset_import}
        convert_version(model, newest, ir_version="keep", registry=draft.registry)
    except (OpshiftError, KeyError) as error:
        yield Flaw(f"it cannot be brought to the newest opsets: {error}", OPERATOR, _body(draft))


def _resolved(draft: Defined) -> Iterator[tuple[int, BodyNode, OperatorVersion | ResolveError]]:
    body = draft.version.body
    for position, node in enumerate(body.nodes if body else ()):
        assert body is not None
        if node.domain in body.opset_imports:
            try:
                opset = body.opset_imports[node.domain]
                yield position, node, draft.staged.get_schema(node.op_type, opset, node.domain)
            except ResolveError as error:
                yield position, node, error


def _misfits(node: BodyNode, operator: OperatorVersion) -> Iterator[str]:
    if operator.deprecated:
        yield f"{operator.id} is deprecated"
    if not operator.min_input <= len(node.inputs) <= operator.max_input:
        yield f"{operator.id} takes {operator.min_input} inputs or more, and not {len(node.inputs)}"
    if not operator.min_output <= len(node.outputs) <= operator.max_output:
        yield f"{operator.id} has not {len(node.outputs)} outputs"


def _wrong(name: str, value: Any, declared: Attribute | None, version: OperatorVersion) -> str:
    if declared is None:
        return f"it has no attribute {name!r}"
    if isinstance(value, FromAttribute):
        given = version.attributes.get(value.attribute)
        same = given is None or given.type == declared.type
        return "" if same else f"{name!r} is {declared.type}, and {value.attribute!r} is not"
    return "" if is_of(value, declared) else f"{name!r} is {declared.type}; {value!r} is not"


def _body(draft: Defined, *keys: int | str) -> tuple[int | str, ...]:
    return ("versions", draft.position, "body", *keys)
