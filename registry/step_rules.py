"""Rules that refute a declared step.

A diff of two definitions cannot prove that a step is `compatible`, but it can disprove it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from opshift.registry.diff import Change, diff
from opshift.registry.function_bodies import Body, BodyNode, FromAttribute
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.steps import (
    AddAttribute,
    AnyVerb,
    AttributeInputVerb,
    AttributeToInput,
    RenameOp,
    RenameValue,
    RequireNoInput,
    RequireNoOutput,
)

Versions = tuple[OperatorVersion, OperatorVersion]


class StepRule(NamedTuple):
    """A kind of change that makes nodes of the source illegal at the target, or changes their meaning."""

    id: str
    purpose: str
    is_violated: Callable[[Change, Versions], bool]


class Refutation(NamedTuple):
    """A rule that a step violates, and the subject of the change that violates it."""

    rule: str
    subject: str
    reason: str


def loses_legal_values(change: Change, versions: Versions) -> bool:
    """Return whether some legal values of the old version's attribute are illegal in the new version."""
    old, new = (version.attributes[change.subject] for version in versions)
    if old.values is not None:
        return not all(new.allows(value) for value in old.values)
    if new.values is not None:
        return True
    return _is_narrower(old.minimum, new.minimum, 1) or _is_narrower(old.maximum, new.maximum, -1)


def _is_narrower(old: float | None, new: float | None, sign: int) -> bool:
    """Return whether a bound excludes more than before; `sign` is 1 for a minimum and -1 for a maximum."""
    return new is not None and (old is None or sign * old < sign * new)


def is_stricter(change: Change) -> bool:
    """Return whether a change of a parameter's option requires more values, or accepts fewer."""
    (old_option, old_arity, old_homogeneous), (new_option, new_arity, new_homogeneous) = (
        change.old,
        change.new,
    )
    old_min, old_max = _bounds(old_option, old_arity)
    new_min, new_max = _bounds(new_option, new_arity)
    return bool(new_min > old_min or new_max < old_max or (new_homogeneous and not old_homogeneous))


def _is_required(version: OperatorVersion, name: str) -> bool:
    found = version.input_named(name)
    return found is not None and min_values(found[1]) > 0


STEP_RULES = (
    StepRule(
        "attribute-removed",
        "A node may have an attribute that the target lacks.",
        lambda change, _: change.kind == "attribute_removed",
    ),
    StepRule(
        "attribute-type-changed",
        "The target cannot read an attribute with a different type.",
        lambda change, _: change.kind == "attribute_type",
    ),
    StepRule(
        "default-changed",
        "A node without the attribute would change its meaning.",
        lambda change, _: change.kind == "attribute_default",
    ),
    StepRule(
        "attribute-became-required",
        "A node may omit an attribute that the target requires.",
        lambda change, versions: (
            (change.kind == "attribute_required" and bool(change.new))
            or (change.kind == "attribute_added" and versions[1].attributes[change.subject].required)
        ),
    ),
    StepRule(
        "values-removed",
        "A node may have an attribute value that the target does not allow.",
        lambda change, versions: change.kind == "attribute_values" and loses_legal_values(change, versions),
    ),
    StepRule(
        "parameter-removed",
        "A node may use an input or output that the target lacks.",
        lambda change, _: change.kind in ("input_removed", "output_removed"),
    ),
    StepRule(
        "parameter-became-required",
        "A node may omit an input that the target requires.",
        lambda change, versions: (
            (change.kind == "input_added" and _is_required(versions[1], change.subject))
            or (change.kind == "input_option" and is_stricter(change))
        ),
    ),
    StepRule(
        "operator-deprecated",
        "A deprecated operator must be replaced by its successor.",
        lambda change, _: change.kind == "deprecation" and bool(change.new),
    ),
)


def refutations(
    old: OperatorVersion, new: OperatorVersion, verbs: tuple[AnyVerb, ...] = ()
) -> tuple[Refutation, ...]:
    """Return the reasons why nodes of `old`, after `verbs`, are not all valid nodes of `new`.

    Only the two definitions are compared; changes that a verb handles are skipped.
    """
    handled = {subject for verb in verbs for subject in _handled_names(verb)}
    # The node becomes an operator that `new` does not define, so the differences do not apply.
    if any(isinstance(verb, RenameOp) for verb in verbs):
        return ()
    return tuple(
        Refutation(rule.id, change.subject, f"{rule.purpose[:-1]} ({change})")
        for change in diff(old, new)
        if change.subject not in handled
        for rule in STEP_RULES
        if rule.is_violated(change, (old, new))
    )


def is_derivable(old: OperatorVersion, new: OperatorVersion) -> bool:
    """Return whether only element types differ, so that the step does not have to be declared."""
    changes = [change for change in diff(old, new) if change.kind not in ("input_name", "output_name")]
    return bool(changes) and all(change.kind in ("input_types", "output_types") for change in changes)


def verb_problem(verb: AnyVerb, old: OperatorVersion, new: OperatorVersion) -> str | None:
    """Return the problem with a verb that names something the definitions lack, or `None`."""
    if isinstance(verb, RenameOp):
        return None
    if isinstance(verb, AddAttribute):
        return None if verb.attribute in new.attributes else f"{new.id} has no attribute {verb.attribute!r}"
    if isinstance(verb, AttributeInputVerb):
        return _conversion_problem(verb, old, new)
    if isinstance(verb, RequireNoInput):
        return None if old.input_named(verb.input) else f"{old.id} has no input {verb.input!r}"
    if isinstance(verb, RequireNoOutput):
        return None if old.output_named(verb.output) else f"{old.id} has no output {verb.output!r}"
    if isinstance(verb, RenameValue):
        return _rename_value_problem(verb, old, new)
    return None if verb.attribute in old.attributes else f"{old.id} has no attribute {verb.attribute!r}"


def _conversion_problem(verb: AttributeInputVerb, old: OperatorVersion, new: OperatorVersion) -> str | None:
    with_attribute, with_input = (old, new) if isinstance(verb, AttributeToInput) else (new, old)
    if verb.attribute_name not in with_attribute.attributes:
        return f"{with_attribute.id} has no attribute {verb.attribute_name!r}"
    name = verb.input_name
    return None if with_input.input_named(name) else f"{with_input.id} has no input {name!r}"


def _rename_value_problem(verb: RenameValue, old: OperatorVersion, new: OperatorVersion) -> str | None:
    for version, values in ((old, verb.values.keys()), (new, verb.values.values())):
        attribute = version.attributes.get(verb.attribute)
        if attribute is None or attribute.values is None:
            return f"{version.id} has no list of allowed values for {verb.attribute!r}"
        unknown = [value for value in values if value not in attribute.values]
        if unknown:
            return f"{version.id} does not allow {unknown[0]!r} for {verb.attribute!r}"
    return None


def _handled_names(verb: AnyVerb) -> tuple[str, ...]:
    """Return the attributes and parameters that a verb handles."""
    if isinstance(verb, AttributeInputVerb):
        return (verb.attribute_name, verb.input_name)
    fields = vars(verb)
    return tuple(str(fields[key]) for key in ("attribute", "to", "input", "output") if key in fields)


def _bounds(option: str, arity: int) -> tuple[int, float]:
    """Return the minimum and maximum number of values of a parameter."""
    return {"single": (1, 1), "optional": (0, 1)}.get(option, (arity, math.inf))


def min_values(parameter: Parameter) -> int:
    """Return the minimum number of values that a node must provide for a parameter."""
    return _bounds(parameter.option, parameter.min_arity)[0]


class BodyProblem(NamedTuple):
    """A problem in a function body; `node` is a 0-based index, or `None` if the whole body is concerned."""

    node: int | None
    reason: str


def body_problems(version: OperatorVersion) -> Iterator[BodyProblem]:
    """Yield the problems in the function body of an operator version.

    These are reads of undefined values, values defined twice, outputs without a producer, variadic
    parameters, domains without an opset import and references to undeclared attributes.
    """
    if version.body is None:
        return
    yield from _variadic_problems(version)
    defined = {formal.name for formal in version.inputs}
    for position, node in enumerate(version.body.nodes):
        yield from (
            BodyProblem(position, reason) for reason in _node_problems(node, defined, version, version.body)
        )
        defined.update(filter(None, node.outputs))
    produced = {name for node in version.body.nodes for name in node.outputs}
    for formal in version.outputs:
        if formal.name not in produced:
            yield BodyProblem(None, f"no node produces the output {formal.name!r}")


def _variadic_problems(version: OperatorVersion) -> Iterator[BodyProblem]:
    for formal in (*version.inputs, *version.outputs):
        if formal.option == "variadic":
            yield BodyProblem(
                None, f"{formal.name!r} is variadic, and a function body cannot name its values"
            )


def _node_problems(node: BodyNode, defined: set[str], version: OperatorVersion, body: Body) -> Iterator[str]:
    if node.domain not in body.opset_imports:
        yield f"{node.op_type} belongs to domain {node.domain!r}, which is missing from opset_imports"
    for name in node.inputs:
        if name and name not in defined:
            yield f"{node.op_type} reads {name!r}, which no input or earlier node defines"
    for name in node.outputs:
        if name and name in defined:
            yield f"{node.op_type} produces {name!r}, which is already defined"
    for value in node.attributes.values():
        if isinstance(value, FromAttribute) and value.attribute not in version.attributes:
            yield f"{node.op_type} refers to {value.attribute!r}, which is not an attribute of the operator"
