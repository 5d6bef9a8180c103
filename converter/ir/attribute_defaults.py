"""Defaults of function attributes (IR version 9); in older versions, every call sets each attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opshift.converter.functions import identity
from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use
from opshift.registry.catalogue import LocalFunction
from opshift.registry.names import canonical_domain

OBSTACLE = "the default applies only to those calls of the enclosing function that omit its attribute"
REMEDY = "set the attribute in all calls of the enclosing function"
Defaults = Mapping[LocalFunction, Mapping[str, Any]]


def find(contents: Contents) -> Iterator[Use]:
    """Yield functions with defaults, and calls that pass on an attribute that may be absent."""
    for path, function in contents.functions:
        if getattr(function, "attribute_proto", ()):
            yield Use("attribute_defaults", path)
    defaults = _defaults(contents)
    without_default = {path: set(function.attribute) for path, function in contents.functions}
    for call in contents.calls if defaults else ():
        for attribute in call.proto.attribute:
            # The path of a call in a subgraph begins with the function that contains it.
            may_be_absent = attribute.ref_attr_name in without_default.get(call.path.partition(" / ")[0], ())
            if may_be_absent and attribute.name in defaults.get(_called(call.proto), ()):
                yield Use("attribute_defaults", call.place, OBSTACLE, REMEDY)


def state(contents: Contents) -> None:
    """Write the defaults into the calls that omit the attributes."""
    defaults = _defaults(contents)
    for call in contents.calls:
        present = {attribute.name for attribute in call.proto.attribute}
        for name, default in defaults.get(_called(call.proto), {}).items():
            if name not in present:
                call.proto.attribute.add().CopyFrom(default)
    for _, function in contents.functions:
        function.attribute.extend(attribute.name for attribute in function.attribute_proto)
        function.ClearField("attribute_proto")


def _defaults(contents: Contents) -> Defaults:
    return {
        identity(function): {attribute.name: attribute for attribute in function.attribute_proto}
        for _, function in contents.functions
        if getattr(function, "attribute_proto", ())
    }


def _called(node: Any) -> LocalFunction:
    return LocalFunction(canonical_domain(node.domain), node.op_type, getattr(node, "overload", ""))
