"""Removal of function copies and opset imports that conversions added and nothing needs any longer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from opshift.adapters.elsewhere import serialized
from opshift.converter.container import graphs_of
from opshift.converter.reversible.places import GRAPH, function_place, top_places
from opshift.converter.reversible.record import Copy, Import, Place
from opshift.registry.names import canonical_domain


def merge_copies(copies: Iterable[Copy], model: Any) -> tuple[Copy, ...]:
    """Remove specialized copies of functions that equal the original function again.

    Calls of a removed copy call the original function instead.

    Args:
        copies: the recorded copies.
        model: the converted ModelProto, which is changed.

    Returns:
        The copies that remain in the model.
    """
    remaining = [each for each in copies if _find_function(each.place, model) is not None]
    count = len(remaining) + 1
    # removing one copy can make another copy that calls it equal to its original
    while len(remaining) < count:
        count = len(remaining)
        remaining = [each for each in remaining if not _merge(each, model)]
    return tuple(remaining)


def _merge(copy: Copy, model: Any) -> bool:
    function = _find_function(copy.place, model)
    kind, domain, _, overload = copy.place
    original = _find_function((kind, domain, copy.name, overload), model)
    # the names of a copy and its original always differ, so compare both under one name
    if original is None or _serialized_as(function, copy.name) != _serialized_as(original, copy.name):
        return False
    for _, container in top_places(model):
        for node in _nodes(container):
            if ("function", canonical_domain(node.domain), node.op_type, _overload(node)) == copy.place:
                node.op_type = copy.name
    model.functions.remove(function)
    return True


def _find_function(place: Place, model: Any) -> Any:
    return next((each for each in model.functions if function_place(each) == place), None)


def _serialized_as(function: Any, name: str) -> bytes:
    renamed = type(function)()
    renamed.CopyFrom(function)
    renamed.name = name
    return serialized(renamed)


def _overload(message: Any) -> str:
    return str(getattr(message, "overload", ""))


def remove_imports(imports: Iterable[Import], model: Any) -> tuple[Import, ...]:
    """Remove added imports of domains that no node uses.

    Returns:
        The imports that remain.
    """
    return tuple(each for each in imports if not _remove_if_unused(each, model))


def _remove_if_unused(added: Import, model: Any) -> bool:
    """Return whether the import is absent, after removing it if no node uses its domain."""
    tops = dict(top_places(model))
    if added.place != GRAPH and added.place not in tops:
        return True
    owner = model if added.place == GRAPH else tops[added.place]
    # functions without imports use the imports of the model
    users = list(tops.values()) if owner is model else [owner]
    if any(canonical_domain(node.domain) == added.domain for each in users for node in _nodes(each)):
        return False
    for index in reversed(range(len(owner.opset_import))):
        if canonical_domain(owner.opset_import[index].domain) == added.domain:
            del owner.opset_import[index]
    return True


def _nodes(container: Any) -> Iterator[Any]:
    """Yield the nodes of a graph or function and of all nested subgraphs."""
    waiting = [container]
    while waiting:
        for node in waiting.pop().node:
            yield node
            waiting += graphs_of(node)
