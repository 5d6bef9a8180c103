"""Rules for inputs and outputs, and for names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opshift.model.operator_ids import PATH_NAME_REMEDY, is_path_name
from opshift.registry.lint.rule_table import Keys, Problem, rule
from opshift.registry.models import Operator, OperatorVersion, Parameter

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.\.\.)?")
"""Identifiers of C, as the IR specification demands; ONNX 1.0 marks variadic parameters by three dots."""

DOMAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*)*")


def parameters(version: OperatorVersion) -> Iterator[tuple[Keys, Parameter]]:
    """Yield the inputs and outputs of a version with their keys."""
    for side, formals in (("inputs", version.inputs), ("outputs", version.outputs)):
        for position, each in enumerate(formals):
            yield (side, position), each


@rule("name.domain", "reverse a domain name that you own, such as com.example")
def name_domain(operator: Operator) -> Iterator[Problem]:
    """A domain is a reversed DNS name of ASCII characters."""
    if not DOMAIN.fullmatch(operator.domain) or not is_path_name(operator.domain):
        yield Problem(f"{operator.domain!r} is not a valid domain", ("domain",))


@rule("name.operator", PATH_NAME_REMEDY)
def name_operator(operator: Operator) -> Iterator[Problem]:
    """The name of an operator can be the name of a file."""
    if not is_path_name(operator.name):
        yield Problem(f"{operator.name!r} is not a valid name", ("name",))


@rule("name.identifier", "use ASCII letters, digits and `_`, and no digit at the start")
def name_identifier(version: OperatorVersion) -> Iterator[Problem]:
    """Inputs, outputs, attributes and type variables have identifiers as names."""
    names: dict[Keys, str] = {(*keys, "name"): each.name for keys, each in parameters(version)}
    names |= {("attributes", name): name for name in version.attributes}
    names |= {("type_constraints", name): name for name in version.type_constraints}
    for keys, name in names.items():
        if not IDENTIFIER.fullmatch(name):
            yield Problem(f"{name!r} is not a valid name", keys)


@rule("parameter.repeated", "rename one of them")
def parameter_repeated(version: OperatorVersion) -> Iterator[Problem]:
    """No two inputs, and no two outputs, have the same name."""
    names = set()
    for (side, position), each in parameters(version):
        if (side, each.name) in names:
            yield Problem(f"{each.name!r} is repeated", (side, position, "name"))
        names.add((side, each.name))


@rule("parameter.variadic", "move the variadic parameter to the end")
def parameter_variadic(version: OperatorVersion) -> Iterator[Problem]:
    """Only the last input, and the last output, is variadic: a node could not tell later ones apart."""
    for side, formals in (("inputs", version.inputs), ("outputs", version.outputs)):
        for position, each in enumerate(formals[:-1]):
            if each.option == "variadic":
                yield Problem(f"{each.name!r} is variadic, but not the last", (side, position))


@rule("parameter.arity", "remove the key, or set `option: variadic`")
def parameter_arity(version: OperatorVersion) -> Iterator[Problem]:
    """Only variadic parameters have `min_arity`, which is not negative, and `homogeneous`."""
    for keys, each in parameters(version):
        if each.min_arity < 0:
            yield Problem(f"{each.min_arity} is negative", (*keys, "min_arity"), "use 0 or more")
        if each.option != "variadic":
            for key, default in (("min_arity", 1), ("homogeneous", True)):
                if getattr(each, key) != default:
                    yield Problem(f"{each.name!r} is not variadic", (*keys, key))
