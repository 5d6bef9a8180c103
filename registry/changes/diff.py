"""Differences between two operator versions, one `Change` each."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from opshift.registry.attribute_values import is_same_value
from opshift.registry.models import Attribute, OperatorVersion, Parameter


class Change(NamedTuple):
    """One difference: its kind, the name of the attribute, parameter or operator, and both values."""

    kind: str
    subject: str
    old: Any
    new: Any

    def __str__(self) -> str:
        text = f"{self.kind.replace('_', ' ')}: {self.subject}"
        if self.old is None and self.new is None:
            return text
        return f"{text}: {_format_value(self.old)} -> {_format_value(self.new)}"


def diff(old: OperatorVersion, new: OperatorVersion) -> tuple[Change, ...]:
    """Return the differences in attributes, inputs, outputs, determinism, status and deprecation."""
    return (
        *_attribute_changes(old.attributes, new.attributes),
        *_parameter_changes("input", old, new),
        *_parameter_changes("output", old, new),
        *_version_changes(old, new),
    )


def _attribute_changes(old: dict[str, Attribute], new: dict[str, Attribute]) -> Iterator[Change]:
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before is None:
            yield Change("attribute_added", name, None, new[name].default)
        elif after is None:
            yield Change("attribute_removed", name, before.default, None)
        else:
            yield from _changes_of_attribute(name, before, after)


def _changes_of_attribute(name: str, old: Attribute, new: Attribute) -> Iterator[Change]:
    yield from field_changes(name, old, new, ("type", "default", "required"), "attribute_")
    allowed = [(each.values, each.minimum, each.maximum) for each in (old, new)]
    if not is_same_value(*allowed):
        yield Change("attribute_values", name, _format_allowed_values(old), _format_allowed_values(new))


def field_changes(
    subject: str, old: object, new: object, fields: tuple[str, ...], prefix: str = ""
) -> Iterator[Change]:
    """Yield a `Change` for each field in `fields` that differs; its kind is `prefix` and the field's name."""
    for field in fields:
        before, after = getattr(old, field), getattr(new, field)
        if not is_same_value(before, after):
            yield Change(f"{prefix}{field}", subject, before, after)


def _format_allowed_values(attribute: Attribute) -> str:
    if attribute.values is not None:
        return ", ".join(map(str, attribute.values))
    low, high = attribute.minimum, attribute.maximum
    if low is None and high is None:
        return "any"
    return f"{'' if low is None else low}..{'' if high is None else high}"


Side = Literal["input", "output"]


def _parameters_of_side(side: Side, version: OperatorVersion) -> tuple[Parameter, ...]:
    return version.inputs if side == "input" else version.outputs


def _parameter_changes(side: Side, old: OperatorVersion, new: OperatorVersion) -> Iterator[Change]:
    before_all, after_all = _parameters_of_side(side, old), _parameters_of_side(side, new)
    for before, after in zip(before_all, after_all, strict=False):
        yield from field_changes(after.name, before, after, ("name",), f"{side}_")
        if _arity_of(before) != _arity_of(after):
            yield Change(f"{side}_option", after.name, _arity_of(before), _arity_of(after))
        types = frozenset(old.types_of(before)), frozenset(new.types_of(after))
        if types[0] != types[1]:
            yield Change(f"{side}_types", after.name, *types)
    for after in after_all[len(before_all) :]:
        yield Change(f"{side}_added", after.name, None, after.option)
    for before in before_all[len(after_all) :]:
        yield Change(f"{side}_removed", before.name, before.option, None)


def _arity_of(parameter: Parameter) -> tuple[str, int, bool]:
    return (parameter.option, parameter.min_arity, parameter.homogeneous)


def _version_changes(old: OperatorVersion, new: OperatorVersion) -> Iterator[Change]:
    yield from field_changes(old.name, old, new, ("determinism", "status"))
    if old.deprecated != new.deprecated:
        yield Change("deprecation", old.name, old.deprecated, new.deprecated)


def fact_changes(old: OperatorVersion, new: OperatorVersion) -> Iterator[Change]:
    """Yield differences that `diff` omits, such as those of type variables, requirements and bodies."""
    for change in field_changes(old.name, old, new, ("shape", "bridge", "axes", "one_of", "requires")):
        yield Change(change.kind, old.name, None, None)
    yield from field_changes(old.name, old, new, ("has_function",))
    if old.body and new.body and not is_same_value(*map(_body_by_position, (old, new))):
        yield Change("body", old.name, None, None)
    if old.deprecation and new.deprecation and old.deprecation != new.deprecation:
        replacements = (", ".join(each.replacements) or None for each in (old.deprecation, new.deprecation))
        yield Change("deprecation_text", old.name, *replacements)
    for name in filter(old.attributes.__contains__, new.attributes):
        before, after = old.attributes[name].absent, new.attributes[name].absent
        if before != after:
            yield Change("attribute_absent", name, before or None, after or None)
    yield from _facts_of_parameters("input", old, new)
    yield from _facts_of_parameters("output", old, new)
    pairs = [*zip(old.inputs, new.inputs, strict=False), *zip(old.outputs, new.outputs, strict=False)]
    for variable, merged in merged_variables(old, new, pairs).items():
        yield Change("types_merged", variable, ", ".join(merged), variable)
    reverse = [(after, before) for before, after in pairs]
    for variable, split in merged_variables(new, old, reverse).items():
        yield Change("types_split", variable, variable, ", ".join(split))


def _body_by_position(version: OperatorVersion) -> tuple[object, ...]:
    """Return the body of a version for comparison, with positions as names of inputs and outputs."""
    body, names = version.body, _names_by_position(version)
    assert body is not None
    nodes = [
        (
            each.domain,
            each.op_type,
            [names.get(name, name) for name in each.inputs],
            [names.get(name, name) for name in each.outputs],
            each.attributes,
        )
        for each in body.nodes
    ]
    return (body.opset_imports, nodes)


def _names_by_position(version: OperatorVersion) -> dict[str, str]:
    """Return a label such as `input 0` for each input and output name; no real name has a space."""
    sides = {"input": version.inputs, "output": version.outputs}
    return {each.name: f"{side} {i}" for side, listed in sides.items() for i, each in enumerate(listed)}


def _facts_of_parameters(side: Side, old: OperatorVersion, new: OperatorVersion) -> Iterator[Change]:
    old_names, new_names = _names_by_position(old), _names_by_position(new)
    for before, after in zip(_parameters_of_side(side, old), _parameters_of_side(side, new), strict=False):
        if before.type != after.type:
            yield Change("type_variable", after.name, before.type, after.type)
        yield from field_changes(after.name, before, after, ("differentiation",), f"{side}_")
        absent = [old_names.get(before.absent_type or "", before.absent_type)]
        absent += [new_names.get(after.absent_type or "", after.absent_type)]
        if before.type_attributes != after.type_attributes or absent[0] != absent[1]:
            sources = [(each.type_attributes, each.absent_type) for each in (before, after)]
            yield Change(f"{side}_type_source", after.name, *sources)


def merged_variables(
    old: OperatorVersion, new: OperatorVersion, pairs: Iterable[tuple[Parameter, Parameter]]
) -> dict[str, list[str]]:
    """Return the type variables of `new` that require equal types where `old` does not.

    Each is mapped to the sorted types or type variables of `old` that it replaces. `pairs` are corresponding
    parameters of both versions.
    """
    replaced: dict[str, dict[str, set[str]]] = {}
    for before, after in pairs:
        shared = {*old.types_of(before)} & {*new.types_of(after)}
        if shared:
            replaced.setdefault(after.type, {}).setdefault(before.type, set()).update(shared)
    return {
        variable: sorted(types)
        for variable, types in replaced.items()
        if len(types) > 1 and len(set().union(*types.values())) > 1
    }


def unmet_groups(old: OperatorVersion, new: OperatorVersion) -> list[tuple[str, ...]]:
    """Return the groups in `new.one_of` in which a node of `old` may set none or several attributes."""
    exclusive = (*old.one_of, *((name,) for name in old.required_attributes))
    groups = (old.attributes.keys() & group for group in exclusive)
    # a group applies only to versions that have one of its attributes
    met = [group for group in groups if group]
    unmet = (group for group in new.one_of if not new.attributes.keys().isdisjoint(group))
    return [group for group in unmet if old.attributes.keys() & group not in met]


def _format_value(value: object) -> str:
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(value)) + "}"
    return "nothing" if value is None else str(value)
