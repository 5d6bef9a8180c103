"""Differences that do not affect nodes and that `diff` omits, because steps do not depend on them."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.registry.diff import Change
from opshift.registry.models import OperatorVersion, Parameter

WORDINGS = (
    "description",
    "shape",
    "bridge",
    "body",
    "step",
    "before",
    "removal",
    "deprecation_text",
    "type_variable",
    "attribute_absent",
    *(f"{side}_{what}" for side in ("input", "output") for what in ("differentiation", "type_source")),
)
"""All kinds of change that this module reports."""


def wording(old: OperatorVersion, new: OperatorVersion) -> Iterator[Change]:
    """Yield every difference that `diff` does not report."""
    for field in ("description", "shape", "bridge", "body"):
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            yield Change(field, old.name, None, None)
    if old.deprecation and new.deprecation and old.deprecation != new.deprecation:
        yield Change("deprecation_text", old.name, old.deprecation.replaced_by, new.deprecation.replaced_by)
    for name in old.attributes.keys() & new.attributes.keys():
        before, after = old.attributes[name].absent, new.attributes[name].absent
        if before != after:
            yield Change("attribute_absent", name, before or None, after or None)
    yield from _parameters("input", old.inputs, new.inputs)
    yield from _parameters("output", old.outputs, new.outputs)


def in_place(old: OperatorVersion, new: OperatorVersion) -> Iterator[Change]:
    """Yield differences between two copies of the same version: its steps and its removal."""
    if old.step != new.step:
        yield Change("step", old.name, None, None)
    if old.before != new.before:
        yield Change("before", old.name, None, None)
    if old.removal != new.removal:
        opsets = (each.removal and each.removal.removed_in for each in (old, new))
        yield Change("removal", old.name, *opsets)


def _parameters(side: str, old: tuple[Parameter, ...], new: tuple[Parameter, ...]) -> Iterator[Change]:
    for before, after in zip(old, new, strict=False):
        if before.type != after.type:
            yield Change("type_variable", after.name, before.type, after.type)
        if before.differentiation != after.differentiation:
            yield Change(f"{side}_differentiation", after.name, before.differentiation, after.differentiation)
        sources = [(each.type_attribute, each.absent_type) for each in (before, after)]
        if sources[0] != sources[1]:
            yield Change(f"{side}_type_source", after.name, *sources)
