"""What can refute a step's claim: a diff never proves `compatible`, but it can show it wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from opshift.registry.diff import Change, diff
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.steps import (
    AddAttribute,
    AnyVerb,
    AttributeToInput,
    InputToAttribute,
    RenameOp,
    RenameValue,
    RequireNoInput,
    RequireNoOutput,
)

Versions = tuple[OperatorVersion, OperatorVersion]


class Rule(NamedTuple):
    """A change that makes a node of the source illegal, or mean something else, at the target."""

    id: str
    purpose: str
    broken: Callable[[Change, Versions], bool]


class Refutation(NamedTuple):
    """A rule that a step breaks, and the change that breaks it."""

    rule: str
    subject: str
    reason: str


def legal_values_lost(change: Change, versions: Versions) -> bool:
    """Whether a value that the old version's attribute may hold is one that the new version's may not."""
    old, new = (version.attributes[change.subject] for version in versions)
    if old.values is not None:
        return not all(new.allows(value) for value in old.values)
    if new.values is not None:
        return True
    return _narrower(old.minimum, new.minimum, 1) or _narrower(old.maximum, new.maximum, -1)


def _narrower(old: float | None, new: float | None, sign: int) -> bool:
    """Whether a bound cuts off more than before; `sign` is 1 for a minimum and -1 for a maximum."""
    return new is not None and (old is None or sign * old < sign * new)


RULES = (
    Rule(
        "attribute-removed",
        "A node may state an attribute that the target does not have.",
        lambda change, _: change.kind == "attribute_removed",
    ),
    Rule(
        "attribute-type-changed",
        "An attribute of another type cannot be read.",
        lambda change, _: change.kind == "attribute_type",
    ),
    Rule(
        "default-changed",
        "A node that leaves the attribute out would mean something else.",
        lambda change, _: change.kind == "attribute_default",
    ),
    Rule(
        "attribute-became-required",
        "A node may leave out an attribute that the target requires.",
        lambda change, versions: (
            (change.kind == "attribute_required" and bool(change.new))
            or (change.kind == "attribute_added" and versions[1].attributes[change.subject].required)
        ),
    ),
    Rule(
        "values-removed",
        "A node may hold a value that the target does not allow.",
        lambda change, versions: change.kind == "attribute_values" and legal_values_lost(change, versions),
    ),
    Rule(
        "parameter-removed",
        "A node may use an input or output that the target does not have.",
        lambda change, _: change.kind in ("input_removed", "output_removed"),
    ),
    Rule(
        "parameter-became-required",
        "A node may leave out an input that the target requires.",
        lambda change, versions: (
            (change.kind == "input_added" and _is_demanded(versions[1], change.subject))
            or (change.kind == "input_option" and demands_more(change))
        ),
    ),
    Rule(
        "operator-deprecated",
        "A deprecated operator is no longer used; its replacement is.",
        lambda change, _: change.kind == "deprecation" and bool(change.new),
    ),
)


def refutations(
    old: OperatorVersion, new: OperatorVersion, verbs: tuple[AnyVerb, ...] = ()
) -> tuple[Refutation, ...]:
    """Why nodes of `old` cannot all stand as nodes of `new` after `verbs`, by the definitions alone."""
    settled = {subject for verb in verbs for subject in _settles(verb)}
    if any(isinstance(verb, RenameOp) for verb in verbs):
        return ()
    return tuple(
        Refutation(rule.id, change.subject, f"{rule.purpose[:-1]} ({change})")
        for change in diff(old, new)
        if change.subject not in settled
        for rule in RULES
        if rule.broken(change, (old, new))
    )


def is_derivable(old: OperatorVersion, new: OperatorVersion) -> bool:
    """Whether the two differ by element types alone, so that the step need not be declared."""
    changes = [change for change in diff(old, new) if change.kind not in ("input_name", "output_name")]
    return bool(changes) and all(change.kind in ("input_types", "output_types") for change in changes)


def misused(verb: AnyVerb, old: OperatorVersion, new: OperatorVersion) -> str | None:
    """Why a verb cannot take `old` to `new`: it names what the definitions do not have."""
    if isinstance(verb, RenameOp):
        return None
    if isinstance(verb, AddAttribute):
        return None if verb.attribute in new.attributes else f"{new.id} has no attribute {verb.attribute!r}"
    if isinstance(verb, AttributeToInput | InputToAttribute):
        return _crosses(verb, old, new)
    if isinstance(verb, RequireNoInput):
        return None if old.input_named(verb.input) else f"{old.id} has no input {verb.input!r}"
    if isinstance(verb, RequireNoOutput):
        return None if old.output_named(verb.output) else f"{old.id} has no output {verb.output!r}"
    if isinstance(verb, RenameValue):
        return _renamed_values(verb, old, new)
    return None if verb.attribute in old.attributes else f"{old.id} has no attribute {verb.attribute!r}"


def _crosses(
    verb: AttributeToInput | InputToAttribute, old: OperatorVersion, new: OperatorVersion
) -> str | None:
    up = isinstance(verb, AttributeToInput)
    attribute, name = (
        (verb.attribute, verb.input_name)
        if isinstance(verb, AttributeToInput)
        else (verb.attribute_name, verb.input)
    )
    with_attribute, with_input = (old, new) if up else (new, old)
    if attribute not in with_attribute.attributes:
        return f"{with_attribute.id} has no attribute {attribute!r}"
    return None if with_input.input_named(name) else f"{with_input.id} has no input {name!r}"


def _renamed_values(verb: RenameValue, old: OperatorVersion, new: OperatorVersion) -> str | None:
    for version, values in ((old, verb.values.keys()), (new, verb.values.values())):
        attribute = version.attributes.get(verb.attribute)
        if attribute is None or attribute.values is None:
            return f"{version.id} declares no values for {verb.attribute!r}"
        unknown = [value for value in values if value not in attribute.values]
        if unknown:
            return f"{version.id} does not allow {unknown[0]!r} for {verb.attribute!r}"
    return None


def _settles(verb: AnyVerb) -> tuple[str, ...]:
    """The attributes and parameters whose change a verb takes care of."""
    fields = vars(verb)
    if isinstance(verb, AttributeToInput):
        return (verb.attribute, verb.input_name)
    if isinstance(verb, InputToAttribute):
        return (verb.input, verb.attribute_name)
    return tuple(str(fields[key]) for key in ("attribute", "to", "input", "output") if key in fields)


def demands_more(change: Change) -> bool:
    """Whether a change of a parameter's option asks for values that could be left out, or takes fewer."""
    (old_option, old_arity, old_homogeneous), (new_option, new_arity, new_homogeneous) = (
        change.old,
        change.new,
    )
    least, most = _bounds(old_option, old_arity)
    new_least, new_most = _bounds(new_option, new_arity)
    return bool(new_least > least or new_most < most or (new_homogeneous and not old_homogeneous))


def _bounds(option: str, arity: int) -> tuple[int, float]:
    """The least and the greatest number of values that a parameter takes."""
    return {"single": (1, 1), "optional": (0, 1)}.get(option, (arity, math.inf))


def least_values(parameter: Parameter) -> int:
    """The least number of values that a node has to give a parameter."""
    return _bounds(parameter.option, parameter.min_arity)[0]


def _is_demanded(version: OperatorVersion, name: str) -> bool:
    found = version.input_named(name)
    return found is not None and least_values(found[1]) > 0
