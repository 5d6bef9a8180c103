"""Defaults of function attributes, from IR version 9 on: before, every call states each attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opshift.converter.functions import identity
from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use
from opshift.registry.catalogue import LocalFunction
from opshift.registry.names import canonical_domain

OBSTACLE = "whether one counts depends on a call further up, which may leave the attribute out"
REMEDY = "state the attribute in that call"
Defaults = Mapping[LocalFunction, Mapping[str, Any]]


def find(contents: Contents) -> Iterator[Use]:
    """The functions with defaults, and the calls that pass on what may not be there."""
    for path, function in contents.functions:
        if getattr(function, "attribute_proto", ()):
            yield Use("attribute_defaults", path)
    defaults = _defaults(contents)
    without = {path: set(function.attribute) for path, function in contents.functions}
    for each in contents.calls if defaults else ():
        for attribute in each.proto.attribute:
            may_lack = attribute.ref_attr_name in without.get(each.path.partition(" / ")[0], ())
            if may_lack and attribute.name in defaults.get(_called(each.proto), ()):
                yield Use("attribute_defaults", each.place, OBSTACLE, REMEDY)


def state(contents: Contents) -> None:
    """Write every default into the calls that leave the attribute out."""
    defaults = _defaults(contents)
    for each in contents.calls:
        stated = {attribute.name for attribute in each.proto.attribute}
        for name, default in defaults.get(_called(each.proto), {}).items():
            if name not in stated:
                each.proto.attribute.add().CopyFrom(default)
    for _, function in contents.functions:
        function.attribute.extend(each.name for each in function.attribute_proto)
        function.ClearField("attribute_proto")


def _defaults(contents: Contents) -> Defaults:
    return {
        identity(function): {each.name: each for each in function.attribute_proto}
        for _, function in contents.functions
        if getattr(function, "attribute_proto", ())
    }


def _called(node: Any) -> LocalFunction:
    return LocalFunction(canonical_domain(node.domain), node.op_type, getattr(node, "overload", ""))
