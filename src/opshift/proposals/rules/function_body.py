"""Rules for function bodies."""

from collections.abc import Iterator

from opshift.checker.findings import ERROR, WARNING
from opshift.converter.convert import convert_version
from opshift.model.errors import OpshiftError
from opshift.model.message_text import did_you_mean
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.models import attribute_value_problem
from opshift.proposals.evidence.evidence import Evaluated
from opshift.proposals.evidence.node_models import body_model
from opshift.proposals.rules.rule_table import ADDING, GUIDE, IR, Problems, first_of, rule
from opshift.registry.bodies import BodyNode, FromAttribute
from opshift.registry.errors import ResolveError
from opshift.registry.models import Attribute, OperatorVersion
from opshift.registry.step_rules import body_problems

FUNCTIONS = f"{IR}: functions"

INVALID_BODY = ("body.names", "body.operators", "body.attributes", "body.opset")
"""Rules that report function bodies that cannot be converted or run."""


@rule("body.names", ERROR, FUNCTIONS, "use the operator's names of inputs, outputs and attributes")
def check_body_names(draft: DefinedDraft) -> Problems:
    """The body reads only defined values, defines each value once, and imports every domain it uses."""
    for problem in body_problems(draft.version):
        keys = () if problem.node is None else ("nodes", problem.node)
        yield draft.at_version(problem.reason, "body", *keys)


@rule(
    "body.operators",
    ERROR,
    FUNCTIONS,
    "use operators of the imported opsets, with the number of inputs and outputs they allow",
    unless=("body.opset",),
)
def check_body_operators(draft: DefinedDraft) -> Problems:
    """Every node of the body is a valid, non-deprecated operator of an opset that the body imports."""
    unknown: set[str] = set()
    for position, node, operator in _resolve_nodes(draft):
        if isinstance(operator, ResolveError):
            # report a wrong opset import once, because it concerns many nodes
            if operator.reason not in unknown:
                unresolved = draft.at_version(operator.reason, "body", "nodes", position)
                yield unresolved._replace(remedy=operator.remedy)
            unknown.add(operator.reason)
        else:
            for reason in _signature_mismatches(node, operator):
                yield draft.at_version(reason, "body", "nodes", position)


@rule("body.attributes", ERROR, FUNCTIONS, "give each attribute a value of its declared type")
def check_body_attributes(draft: DefinedDraft) -> Problems:
    """Nodes of the body have all required and no unknown attributes, with values of the declared types."""
    for position, node, operator in _resolve_nodes(draft):
        if isinstance(operator, ResolveError):
            continue  # the rule body.operators reports the node
        keys = ("body", "nodes", position)
        for name in operator.required_attributes:
            if name not in node.attributes:
                yield draft.at_version(f"{node.op_type} lacks the required attribute {name!r}", *keys)
        for name, value in node.attributes.items():
            reason = _attribute_problem(name, value, operator.attributes.get(name), draft.version)
            if reason:
                remedy = "" if name in operator.attributes else did_you_mean(name, operator.attributes, "")
                problem = draft.at_version(f"{node.op_type}: {reason}", *keys, "attributes", name)
                yield problem._replace(remedy=remedy)


@rule("body.opset", ERROR, GUIDE, "write the body with other operators of this opset or an earlier one")
def check_body_opset(draft: DefinedDraft) -> Problems:
    """The body imports no later opset than the operator has, and does not contain the operator itself.

    It may use other operators that enter the same opset. Expanding the operator into its body must terminate.
    """
    body, domain, since = draft.version.body, draft.operator.domain, draft.version.since_version
    imported = body.opset_imports.get(domain, 0) if body else 0
    if imported > since:
        reason = f"the body imports opset {imported}, but the operator enters opset {since}"
        yield draft.at_version(reason, "body", "opset_imports", domain)
    elif draft.is_recursive:
        yield draft.at_version(f"expanding the body leads to {draft.operator.name} again", "body")


@rule(
    "body.agrees",
    ERROR,
    f"{ADDING}: function body",
    "correct the body or the reference",
    unless=("reference.",),
)
def check_body_agrees(draft: Evaluated) -> Problems:
    """The body computes the same outputs as the reference for every example and element type.

    A function has two definitions, and a runtime may implement either.
    """
    different = [each for each in draft.evidence.bodies if each.verdict == "differs"]
    reasons = ((each.case.name, f"{each.case.name}: {each.reason}") for each in different)
    return first_of((name, draft.at_version(reason, "body")) for name, reason in reasons)


@rule("body.runs", ERROR, GUIDE, "add an example that an installed runtime supports", unless=("body.",))
def check_body_runs(draft: Evaluated) -> Problems:
    """An installed runtime can run the body on at least one example."""
    bodies = draft.evidence.bodies
    if bodies and all(each.verdict == "not run" for each in bodies):
        yield draft.at_version(f"no installed runtime can run the body: {bodies[0].reason}", "body")


@rule(
    "body.types",
    WARNING,
    GUIDE,
    "compare the results by other means, or leave the type to a later version",
    unless=INVALID_BODY,
)
def check_body_types(draft: Evaluated) -> Problems:
    """An installed runtime can run the body in every element type.

    Otherwise there is no evidence that the body agrees with the reference in that type.
    """
    bodies = draft.evidence.bodies
    types_run = {each.case.retyped for each in bodies if each.verdict != "not run"}
    reasons = {each.case.retyped: each.reason for each in bodies if each.case.retyped not in types_run}
    for element_type, reason in reasons.items() if types_run else ():
        yield draft.at_version(f"{element_type or 'element type of the example'}: {reason}", "body")


@rule("body.opsets", WARNING, FUNCTIONS, "use operators that the converter can upgrade", unless=INVALID_BODY)
def check_body_opsets(draft: Evaluated) -> Problems:
    """The body can be upgraded from the opsets that it imports to the newest opsets.

    A function outlives the opsets that its body was written for.
    """
    runs = (each for each in draft.evidence.outcomes if each.outputs and each.case.version.body)
    outcome = next(runs, None)
    if outcome is None or outcome.outputs is None or any(body_problems(draft.version)):
        return
    try:
        model = body_model(outcome.case, outcome.outputs, draft.staged)
        newest = {each.domain: draft.staged.newest_opset(each.domain) for each in model.opset_import}
        convert_version(model, newest, ir_version="keep", registry=draft.staged)
    except (OpshiftError, KeyError) as error:
        yield draft.at_version(f"the body cannot be upgraded to the newest opsets: {error}", "body")


def _resolve_nodes(draft: DefinedDraft) -> Iterator[tuple[int, BodyNode, OperatorVersion | ResolveError]]:
    body = draft.version.body
    for position, node in enumerate(body.nodes if body else ()):
        assert body is not None
        # The rule body.names reports a domain without an import.
        if node.domain in body.opset_imports:
            try:
                opset = body.opset_imports[node.domain]
                yield position, node, draft.staged.get_schema(node.op_type, opset, node.domain)
            except ResolveError as error:
                yield position, node, error


def _signature_mismatches(node: BodyNode, operator: OperatorVersion) -> Iterator[str]:
    if operator.deprecated:
        yield f"{operator.id} is deprecated"
    inputs, outputs = len(node.inputs), len(node.outputs)
    if not operator.min_input <= inputs <= operator.max_input:
        allowed = f"it has {len(operator.inputs)}, at least {operator.min_input} of them required"
        yield f"{operator.id} does not accept {inputs} inputs: {allowed}"
    if not operator.min_output <= outputs <= operator.max_output:
        allowed = f"it has {len(operator.outputs)}, at least {operator.min_output} of them required"
        yield f"{operator.id} does not produce {outputs} outputs: {allowed}"


def _attribute_problem(
    name: str, value: object, declared: Attribute | None, version: OperatorVersion
) -> str | None:
    if declared is None:
        return f"unknown attribute {name!r}"
    if not isinstance(value, FromAttribute):
        return attribute_value_problem(name, value, declared)
    outer = version.attributes.get(value.attribute)
    if outer is None or outer.type == declared.type:
        return None
    return f"{name!r} has type {declared.type}, but {value.attribute!r} of the operator {outer.type}"
