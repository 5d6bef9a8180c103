"""Overloads (IR version 10); in older versions, domain and name alone identify a function."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.functions import identity
from opshift.converter.ir.contents import Contents
from opshift.converter.ir.use import Use
from opshift.registry.catalogue import LocalFunction
from opshift.registry.names import canonical_domain


def find(contents: Contents) -> Iterator[Use]:
    """Yield functions and calls with an overload."""
    for path, function in contents.functions:
        if identity(function).overload:
            yield Use("overloads", path)
    yield from (Use("overloads", node.place) for node in contents.overloaded)


def rename(contents: Contents) -> None:
    """Give each overloaded function a unique name, and update its calls."""
    names = _new_names(contents)
    for _, function in contents.functions:
        if function.overload:
            function.name = names[identity(function)]
            function.ClearField("overload")
    for call in contents.overloaded:
        node = call.proto
        called = LocalFunction(canonical_domain(node.domain), node.op_type, node.overload)
        node.op_type = names.get(called, node.op_type)
        node.ClearField("overload")


def _new_names(contents: Contents) -> dict[LocalFunction, str]:
    functions = [identity(function.proto) for function in contents.functions]
    used = {(function.domain, function.name) for function in functions}
    new_names: dict[LocalFunction, str] = {}
    for function in functions:
        if not function.overload:
            continue
        name = f"{function.name}_{function.overload}"
        while (function.domain, name) in used:
            name += "_"
        used.add((function.domain, name))
        new_names[function] = name
    return new_names
