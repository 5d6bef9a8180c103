"""Rules for function bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opshift.checker.findings import Level
from opshift.converter.convert import convert_version
from opshift.model.errors import OpshiftError
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.folder import OPERATOR
from opshift.proposals.content.models import matches_attribute_type
from opshift.proposals.evidence.evidence import Evaluated
from opshift.proposals.evidence.node_models import body_model
from opshift.proposals.rules.rule_table import ProposalProblem, rule
from opshift.registry.errors import ResolveError
from opshift.registry.function_bodies import BodyNode, FromAttribute
from opshift.registry.models import Attribute, OperatorVersion
from opshift.registry.step_rules import body_problems

FUNCTIONS_SOURCE = "ONNX, IR specification: functions"


@rule(
    "body.names",
    Level.ERROR,
    source=FUNCTIONS_SOURCE,
    remedy="use the operator's names of inputs, outputs and attributes",
)
def check_body_names(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """The body reads only defined values, defines each value once, and imports every domain it uses."""
    for problem in body_problems(draft.version):
        keys = () if problem.node is None else ("nodes", problem.node)
        yield ProposalProblem(problem.reason, OPERATOR, _body_keys(draft, *keys))


@rule(
    "body.operators",
    Level.ERROR,
    source=FUNCTIONS_SOURCE,
    remedy="use operators of the imported opsets, with the number of inputs and outputs they allow",
)
def check_body_operators(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """Every node of the body is a valid, non-deprecated operator of an opset that the body imports."""
    for position, node, operator in _resolve_nodes(draft):
        keys = _body_keys(draft, "nodes", position)
        if isinstance(operator, ResolveError):
            yield ProposalProblem(f"{operator.reason}", OPERATOR, keys, operator.remedy)
            continue
        yield from (
            ProposalProblem(reason, OPERATOR, keys) for reason in _signature_mismatches(node, operator)
        )


@rule(
    "body.attributes",
    Level.ERROR,
    source=FUNCTIONS_SOURCE,
    remedy="give each attribute a value of its declared type",
)
def check_body_attributes(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """Nodes of the body have all required and no unknown attributes, with values of the declared types."""
    for position, node, operator in _resolve_nodes(draft):
        if isinstance(operator, ResolveError):
            continue  # reported by body.operators
        keys = _body_keys(draft, "nodes", position)
        for name in operator.required_attributes:
            if name not in node.attributes:
                yield ProposalProblem(f"{node.op_type} lacks the required attribute {name!r}", OPERATOR, keys)
        for name, value in node.attributes.items():
            reason = _attribute_problem(name, value, operator.attributes.get(name), draft.version)
            if reason:
                yield ProposalProblem(f"{node.op_type}: {reason}", OPERATOR, (*keys, "attributes", name))


@rule("body.opset", Level.ERROR, source="docs/proposals.md", remedy="write the body for an earlier opset")
def check_body_opset(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """The body imports opsets older than the opset that introduces the operator.

    Models can then be downgraded by expanding the operator into its body.
    """
    body = draft.version.body
    imported = body.opset_imports.get(draft.operator.domain, 0) if body else 0
    if imported >= draft.version.since_version:
        keys = _body_keys(draft, "opset_imports", draft.operator.domain)
        yield ProposalProblem(
            f"the body imports opset {imported}, but the operator enters opset {draft.version.since_version}",
            OPERATOR,
            keys,
        )


@rule(
    "body.agrees",
    Level.ERROR,
    source="ONNX, Adding New Operator: function body",
    remedy="correct the body or the reference",
)
def check_body_agrees(draft: Evaluated) -> Iterator[ProposalProblem]:
    """The body computes the same outputs as the reference for every example and element type.

    A function has two definitions, and a runtime may implement either.
    """
    for each in draft.evidence.bodies:
        if each.verdict == "differs":
            yield ProposalProblem(f"{each.case.name}: {each.reason}", OPERATOR, _body_keys(draft))


@rule(
    "body.runs",
    Level.ERROR,
    source="docs/proposals.md",
    remedy="add an example that an installed runtime supports",
)
def check_body_runs(draft: Evaluated) -> Iterator[ProposalProblem]:
    """An installed runtime can run the body on at least one example."""
    reasons = [each.reason for each in draft.evidence.bodies if each.verdict == "not run"]
    if reasons and len(reasons) == len(draft.evidence.bodies):
        yield ProposalProblem(
            f"no installed runtime can run the body: {reasons[0]}", OPERATOR, _body_keys(draft)
        )


@rule(
    "body.types",
    Level.WARNING,
    source="docs/proposals.md",
    remedy="compare the results by other means, or leave the type to a later version",
)
def check_body_types(draft: Evaluated) -> Iterator[ProposalProblem]:
    """An installed runtime can run the body in every element type.

    Otherwise there is no evidence that the body agrees with the reference in that type.
    """
    types_run = {each.case.retyped for each in draft.evidence.bodies if each.verdict != "not run"}
    types_not_run = {
        each.case.retyped: each.reason for each in draft.evidence.bodies if each.case.retyped not in types_run
    }
    for element_type, reason in types_not_run.items() if types_run else ():
        yield ProposalProblem(
            f"{element_type or 'element type of the example'}: {reason}", OPERATOR, _body_keys(draft)
        )


@rule(
    "body.opsets",
    Level.WARNING,
    source="ONNX, IR specification: functions",
    remedy="use operators that the converter can upgrade",
)
def check_body_opsets(draft: Evaluated) -> Iterator[ProposalProblem]:
    """The body can be upgraded from the opsets that it imports to the newest opsets.

    A function outlives the opsets that its body was written for.
    """
    outcome = next(
        (each for each in draft.evidence.outcomes if each.outputs and each.case.version.body), None
    )
    if outcome is None or outcome.outputs is None or any(body_problems(draft.version)):
        return
    try:
        model = body_model(outcome.case, outcome.outputs, draft.registry)
        newest = {each.domain: draft.registry.newest_opset(each.domain) for each in model.opset_import}
        convert_version(model, newest, ir_version="keep", registry=draft.registry)
    except (OpshiftError, KeyError) as error:
        yield ProposalProblem(
            f"the body cannot be upgraded to the newest opsets: {error}", OPERATOR, _body_keys(draft)
        )


def _resolve_nodes(draft: DefinedDraft) -> Iterator[tuple[int, BodyNode, OperatorVersion | ResolveError]]:
    body = draft.version.body
    for position, node in enumerate(body.nodes if body else ()):
        assert body is not None
        # A domain without an import is reported by body.names.
        if node.domain in body.opset_imports:
            try:
                opset = body.opset_imports[node.domain]
                yield position, node, draft.staged.get_schema(node.op_type, opset, node.domain)
            except ResolveError as error:
                yield position, node, error


def _signature_mismatches(node: BodyNode, operator: OperatorVersion) -> Iterator[str]:
    if operator.deprecated:
        yield f"{operator.id} is deprecated"
    if not operator.min_input <= len(node.inputs) <= operator.max_input:
        yield (
            f"{operator.id} does not accept {len(node.inputs)} inputs: it has {len(operator.inputs)}, "
            f"at least {operator.min_input} of them required"
        )
    if not operator.min_output <= len(node.outputs) <= operator.max_output:
        yield (
            f"{operator.id} does not produce {len(node.outputs)} outputs: it has {len(operator.outputs)}, "
            f"at least {operator.min_output} of them required"
        )


def _attribute_problem(name: str, value: Any, declared: Attribute | None, version: OperatorVersion) -> str:
    if declared is None:
        return f"unknown attribute {name!r}"
    if isinstance(value, FromAttribute):
        outer = version.attributes.get(value.attribute)
        has_same_type = outer is None or outer.type == declared.type
        return (
            ""
            if has_same_type
            else f"{name!r} has type {declared.type}, the operator's attribute {value.attribute!r} has not"
        )
    return (
        ""
        if matches_attribute_type(value, declared)
        else f"expected a value of type {declared.type} for {name!r}, got {value!r}"
    )


def _body_keys(draft: DefinedDraft, *keys: int | str) -> tuple[int | str, ...]:
    return ("versions", draft.position, "body", *keys)
