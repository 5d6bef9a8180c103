"""Overloads, from IR version 10 on: before, a function is known by its domain and name alone."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.functions import identity
from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use
from opshift.registry.catalogue import LocalFunction
from opshift.registry.names import canonical_domain


def find(contents: Contents) -> Iterator[Use]:
    """The functions that have one, and the nodes that name one."""
    for path, function in contents.functions:
        if identity(function).overload:
            yield Use("overloads", path)
    yield from (Use("overloads", each.place) for each in contents.overloaded)


def rename(contents: Contents) -> None:
    """Give every overload a name of its own, and its calls too."""
    names = _names(contents)
    for _, function in contents.functions:
        if function.overload:
            function.name = names[identity(function)]
            function.ClearField("overload")
    for each in contents.overloaded:
        node = each.proto
        call = LocalFunction(canonical_domain(node.domain), node.op_type, node.overload)
        node.op_type = names.get(call, node.op_type)
        node.ClearField("overload")


def _names(contents: Contents) -> dict[LocalFunction, str]:
    functions = [identity(each.proto) for each in contents.functions]
    taken = {(each.domain, each.name) for each in functions}
    found: dict[LocalFunction, str] = {}
    for each in functions:
        if not each.overload:
            continue
        name = f"{each.name}_{each.overload}"
        while (each.domain, name) in taken:
            name += "_"
        taken.add((each.domain, name))
        found[each] = name
    return found
