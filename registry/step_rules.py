"""Rules for steps (conversions between two versions of an operator), verbs and function bodies.

A diff of two definitions cannot prove that a step is `compatible`, but it can refute the declaration.
"""

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from itertools import chain, pairwise
from typing import Final, NamedTuple

from opshift.model.element_types import element_names
from opshift.registry.attribute_values import Value, is_same_value, stored_value
from opshift.registry.bodies import Body, BodyNode, FromAttribute
from opshift.registry.changes.diff import Change, diff, fact_changes, merged_variables, unmet_groups
from opshift.registry.models import Attribute, Operator, OperatorVersion, Parameter
from opshift.registry.steps import (
    AddAttribute,
    AnyVerb,
    AttributeInputVerb,
    AttributeToInput,
    DropAttribute,
    IgnoreAttribute,
    RenameAttribute,
    RenameOp,
    RenameValue,
    RequireAttribute,
    RequireNoInput,
    RequireNoOutput,
    Step,
)

Versions = tuple[OperatorVersion, OperatorVersion]


STEP_RULES: Final = {
    "attribute-removed": "A node may have an attribute that the target lacks.",
    "attribute-type-changed": "The target cannot read an attribute with a different type.",
    "default-changed": "A node without the attribute would change its meaning.",
    "attribute-became-required": "A node may omit an attribute that the target requires.",
    "values-removed": "A node may have an attribute value that the target does not allow.",
    "parameter-removed": "A node may use an input or output that the target lacks.",
    "parameter-became-required": "A node may omit an input that the target requires.",
    "parameter-moved": "Values belong to parameters by position, so a node would mix them up.",
    "types-merged": "A node may have different types where the target requires the same type.",
    "type-rule-changed": "The output of a node may get a different type.",
    "attribute-group-added": "A node may set none or several of the attributes of a group.",
    "operator-deprecated": "A deprecated operator must be replaced by its successor.",
}
"""Kinds of change that make nodes of the source illegal at the target, or change their meaning."""


class Refutation(NamedTuple):
    """A rule that a step violates, and the changed attribute, parameter or operator."""

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
    """Return whether a new bound excludes more values; `sign` is 1 for a minimum and -1 for a maximum."""
    return new is not None and (old is None or sign * old < sign * new)


def is_stricter(change: Change) -> bool:
    """Return whether a changed option requires more values or equal types, or allows fewer values."""
    (old_option, old_arity, was_homogeneous), (new_option, new_arity, is_homogeneous) = change.old, change.new
    old_min, old_max = _bounds(old_option, old_arity)
    new_min, new_max = _bounds(new_option, new_arity)
    return bool(new_min > old_min or new_max < old_max or (is_homogeneous and not was_homogeneous))


def adds_type_source(change: Change) -> bool:
    """Return whether a change only adds attributes that set an output's type; nodes without them keep it."""
    (old, old_absent), (new, new_absent) = change.old, change.new
    return set(old) < set(new) and old_absent in (None, new_absent)


def _is_required(version: OperatorVersion, name: str) -> bool:
    found = version.input_named(name)
    return found is not None and min_values(found[1]) > 0


def _violated_rule(change: Change, versions: Versions) -> str | None:
    """Return the id of the rule that a change violates, or `None`."""
    kind, new = change.kind, versions[1]
    if kind == "attribute_added":
        is_violated = new.attributes[change.subject].required
    elif kind == "attribute_values":
        is_violated = loses_legal_values(change, versions)
    elif kind == "input_added":
        is_violated = _is_required(new, change.subject)
    elif kind == "input_option":
        is_violated = is_stricter(change)
    elif kind in ("attribute_required", "deprecation"):
        is_violated = bool(change.new)
    elif kind == "output_type_source":
        is_violated = not adds_type_source(change)
    else:
        is_violated = True
    return _RULE_BY_KIND.get(kind) if is_violated else None


_RULE_BY_KIND: Final = {
    "attribute_removed": "attribute-removed",
    "attribute_type": "attribute-type-changed",
    "attribute_default": "default-changed",
    "attribute_required": "attribute-became-required",
    "attribute_added": "attribute-became-required",
    "attribute_values": "values-removed",
    "input_removed": "parameter-removed",
    "output_removed": "parameter-removed",
    "input_added": "parameter-became-required",
    "input_option": "parameter-became-required",
    "output_type_source": "type-rule-changed",
    "deprecation": "operator-deprecated",
}


def refutations(
    old: OperatorVersion, new: OperatorVersion, verbs: tuple[AnyVerb, ...] = ()
) -> tuple[Refutation, ...]:
    """Return the reasons why nodes of `old`, after `verbs`, are not all valid nodes of `new`.

    Only the two definitions are compared; changes that a verb handles are skipped.
    """
    # RenameOp gives the node another operator, so the changes from `old` to `new` do not apply.
    if any(isinstance(verb, RenameOp) for verb in verbs):
        return ()
    handled = {subject for verb in verbs for subject in _handled_names(verb)}
    found = tuple(_refutations_in(_all_changes(old, new), (old, new), handled))
    return (*found, *_changed_defaults(old, new, verbs), *_unknown_new_names(new, verbs))


def _unknown_new_names(new: OperatorVersion, verbs: tuple[AnyVerb, ...]) -> Iterator[Refutation]:
    """Yield a refutation for each new name of an attribute that `new` lacks."""
    for verb in verbs:
        if isinstance(verb, RenameAttribute) and verb.to not in new.attributes:
            reason = STEP_RULES["attribute-removed"].removesuffix(".")
            yield Refutation("attribute-removed", verb.to, f"{reason} (renamed to {verb.to!r})")


def _changed_defaults(
    old: OperatorVersion, new: OperatorVersion, verbs: tuple[AnyVerb, ...]
) -> Iterator[Refutation]:
    """Yield a refutation for each handled attribute whose old default changes for nodes that omit it."""
    handled = {subject for verb in verbs for subject in _handled_names(verb)}
    for name, attribute in old.attributes.items():
        # Versions can have a misspelled default that they do not allow, such as `foward` in GRU 1.
        if name in handled and attribute.default is not None and not _has_illegal_default(attribute):
            yield from _changed_default(name, attribute, new, verbs)


def _has_illegal_default(attribute: Attribute) -> bool:
    return isinstance(attribute.default, str) and not attribute.allows(attribute.default)


def _is_same(value: Value, default: Value, kind: str) -> bool:
    with suppress(ValueError):  # out of range for float32
        return is_same_value(stored_value(value, kind), stored_value(default, kind))
    return False


def _changed_default(
    name: str, attribute: Attribute, new: OperatorVersion, verbs: tuple[AnyVerb, ...]
) -> Iterator[Refutation]:
    """Apply `verbs` to a node without the attribute; yield a refutation if the attribute's value changes."""
    assert attribute.default is not None
    if any(_refuses_or_removes(verb, name, attribute) for verb in verbs):
        return
    new_name, expected = name, attribute.default
    values: dict[str, Value] = {}
    for verb in verbs:
        match verb:
            case AddAttribute():
                values.setdefault(verb.attribute, verb.value)
            case RenameAttribute():
                new_name = verb.to if verb.attribute == new_name else new_name
                if verb.attribute in values:
                    values[verb.to] = values.pop(verb.attribute)
            case RenameValue() if verb.attribute == new_name:
                expected = verb.values.get(str(expected), expected)
                values = {key: verb.values.get(str(value), value) for key, value in values.items()}
            case DropAttribute():
                values.pop(verb.attribute, None)
    if new_name in new.attributes:
        actual = values.get(new_name, new.attributes[new_name].default)
        if actual is not None and not _is_same(actual, expected, new.attributes[new_name].type):
            reason = STEP_RULES["default-changed"].removesuffix(".")
            text = f"{reason} ({new_name}: the default was {expected!r}, and the step yields {actual!r})"
            yield Refutation("default-changed", name, text)


def _refuses_or_removes(verb: AnyVerb, name: str, attribute: Attribute) -> bool:
    """Return whether a verb refuses nodes without the attribute, or removes the attribute of any node."""
    if isinstance(verb, RequireAttribute) and attribute.default is not None:
        return verb.attribute == name and not _is_same(verb.value, attribute.default, attribute.type)
    return isinstance(verb, IgnoreAttribute | AttributeToInput) and verb.attribute == name


def _all_changes(old: OperatorVersion, new: OperatorVersion) -> tuple[Change, ...]:
    return (*diff(old, new), *fact_changes(old, new))


def _refutations_in(
    changes: Iterable[Change], versions: Versions, handled: Set[str] = frozenset()
) -> Iterator[Refutation]:
    """Yield the refutations of a step between versions with the given changes, see `refutations`."""
    violated = (
        *((_violated_rule(each, versions), each) for each in changes if not _is_handled(each, handled)),
        *_changes_of_positions(*versions, handled),
        *_changes_of_groups(*versions, handled),
    )
    for rule, change in violated:
        if rule:
            yield Refutation(rule, change.subject, f"{STEP_RULES[rule].removesuffix('.')} ({change})")


def _is_handled(change: Change, handled: Set[str]) -> bool:
    """Return whether a verb handles the changed attribute or parameter, or an attribute that sets a type."""
    attributes = (*change.old[0], *change.new[0]) if change.kind == "output_type_source" else ()
    return not handled.isdisjoint((change.subject, *attributes))


def _changes_of_positions(
    old: OperatorVersion, new: OperatorVersion, handled: Set[str]
) -> Iterator[tuple[str, Change]]:
    """Yield moved inputs and outputs, and type variables that nodes of `old` may bind to different types."""
    pairs: list[tuple[Parameter, Parameter]] = []
    for before, after in ((old.inputs, new.inputs), (old.outputs, new.outputs)):
        kept = [[each for each in side if each.name not in handled] for side in (before, after)]
        names = [{each.name for each in side} for side in kept]
        for one, other in zip(*kept, strict=False):
            pairs.append((one, other))
            # Nodes do not contain the names of parameters, so a parameter with a new name counts as renamed.
            if one.name != other.name and (one.name in names[1] or other.name in names[0]):
                yield "parameter-moved", Change("parameter_moved", other.name, one.name, other.name)
    for variable, merged in merged_variables(old, new, pairs).items():
        yield "types-merged", Change("types_merged", variable, ", ".join(merged), variable)


def _changes_of_groups(
    old: OperatorVersion, new: OperatorVersion, handled: Set[str]
) -> Iterator[tuple[str, Change]]:
    """Yield the rule and the change for each attribute group of `new` that a node of `old` can violate."""
    for group in unmet_groups(old, new):
        if handled.isdisjoint(group):
            yield "attribute-group-added", Change("group_added", ", ".join(group), None, None)


_DERIVED_KINDS: Final = frozenset(
    {
        *("input_types", "output_types", "input_name", "output_name", "type_variable", "types_split"),
        *("input_differentiation", "output_differentiation", "attribute_absent"),
        *("has_function", "bridge", "requires", "deprecation_text"),
    }
)
"""Kinds of change that keep the meaning of nodes."""


def is_derivable(old: OperatorVersion, new: OperatorVersion) -> bool:
    """Return whether the versions differ in types, and in nothing else that affects nodes."""
    changes = _all_changes(old, new)
    kinds = {each.kind for each in changes}
    has_other_types = not kinds.isdisjoint(("input_types", "output_types"))
    return has_other_types and kinds <= _DERIVED_KINDS and not any(_refutations_in(changes, (old, new)))


LostTypes = dict[str, frozenset[str]]
"""For each type variable, the types that the source version supports and the target version does not."""


def lost_types(source: OperatorVersion, target: OperatorVersion) -> LostTypes:
    """Return the types that the source version supports and the target version does not, by type variable."""
    return lost_input_types(source, target) | _lost_by_variable(
        source, source.outputs, target, target.outputs
    )


def lost_input_types(source: OperatorVersion, target: OperatorVersion) -> LostTypes:
    """Return the lost types of the inputs only, see `lost_types`."""
    return _lost_by_variable(source, source.inputs, target, target.inputs)


def _lost_by_variable(
    source: OperatorVersion, old: Sequence[Parameter], target: OperatorVersion, new: Sequence[Parameter]
) -> LostTypes:
    found = {}
    for before, after in zip(old, new, strict=False):
        types = frozenset(source.types_of(before)) - frozenset(target.types_of(after))
        if types:
            found[before.type] = types
    return found


def affected_element_types(source: OperatorVersion, target: OperatorVersion) -> frozenset[str]:
    """Return the element types in `lost_types`, also those of sequences, maps and optional types."""
    lost = chain.from_iterable(lost_types(source, target).values())
    return frozenset(chain.from_iterable(map(element_names, lost)))


def compatible_steps(operator: Operator) -> dict[str, tuple[str, ...]]:
    """Return the element types that the target lacks for each compatible or derived step, by `step_key`."""
    found = {}
    for old, new in pairwise(operator.versions):
        step = new.step or Step()
        for source, target, action in ((old, new, step.up), (new, old, step.down)):
            is_declared = action in ("compatible", ()) and not refutations(source, target)
            if is_declared or (action is None and is_derivable(source, target)):
                affected = affected_element_types(source, target)
                found[step_key(source.since_version, target.since_version)] = tuple(sorted(affected))
    return found


def step_key(source: int, target: int) -> str:
    """Return the key of a step in `compatible_steps`, such as `7 13`."""
    return f"{source} {target}"


def verb_problem(verb: AnyVerb, old: OperatorVersion, new: OperatorVersion) -> str | None:
    """Return why a verb does not match the definitions, such as a missing attribute; `None` if it matches."""
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
    parameters, domains without an opset import, mixed lists, and references to undeclared attributes.
    """
    if version.body is None:
        return
    for formal in (*version.inputs, *version.outputs):
        if formal.option == "variadic":
            reason = f"{formal.name!r} is variadic, and a function body cannot name its values"
            yield BodyProblem(None, reason)
    defined = {formal.name for formal in version.inputs}
    unknown: set[str] = set()
    for position, node in enumerate(version.body.nodes):
        for reason in _node_problems(node, defined, unknown, version, version.body):
            yield BodyProblem(position, reason)
        unknown.update(set(node.inputs) - defined)
        defined.update(filter(None, node.outputs))
    produced = {name for node in version.body.nodes for name in node.outputs}
    for formal in version.outputs:
        if formal.name not in produced:
            yield BodyProblem(None, f"no node produces the output {formal.name!r}")


def _node_problems(
    node: BodyNode, defined: set[str], unknown: set[str], version: OperatorVersion, body: Body
) -> Iterator[str]:
    if node.domain not in body.opset_imports:
        yield f"{node.op_type} belongs to domain {node.domain!r}, which is missing from opset_imports"
    for name in node.inputs:
        if name and name not in defined and name not in unknown:  # report an unknown name only once
            yield f"{node.op_type} reads {name!r}, which no input or earlier node defines"
    for name in node.outputs:
        if name and name in defined:
            yield f"{node.op_type} produces {name!r}, which is already defined"
    for name, value in node.attributes.items():
        if isinstance(value, tuple) and len({isinstance(each, str) for each in value}) > 1:
            yield f"{node.op_type} has numbers and strings in the list {name!r}"
        if isinstance(value, FromAttribute) and value.attribute not in version.attributes:
            yield f"{node.op_type} refers to the attribute {value.attribute!r}, which {version.id} lacks"
