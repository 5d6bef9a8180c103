"""What conversions added beside nodes, and take out once nothing needs it: copies of functions, imports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from opshift.adapters.elsewhere import serialized
from opshift.converter.container import graphs_of
from opshift.converter.reversible.places import GRAPH, function_place, top_places
from opshift.converter.reversible.record import Copy, Import, Place
from opshift.registry.names import canonical_domain


def merge_copies(copies: Iterable[Copy], model: Any) -> tuple[Copy, ...]:
    """Take out the copies of functions that have come to be what they are copies of.

    Returns those that are left.
    """
    left = [each for each in copies if _function(each.place, model) is not None]
    count = len(left) + 1
    while len(left) < count:  # a function may call copies, and be equal only when they are gone
        count = len(left)
        left = [each for each in left if not _merge(each, model)]
    return tuple(left)


def _merge(copy: Copy, model: Any) -> bool:
    function = _function(copy.place, model)
    kind, domain, _, overload = copy.place
    origin = _function((kind, domain, copy.name, overload), model)
    if origin is None or _renamed(function, copy.name) != _renamed(origin, copy.name):
        return False
    for _, container in top_places(model):
        for node in _nodes(container):
            if ("function", canonical_domain(node.domain), node.op_type, _overload(node)) == copy.place:
                node.op_type = copy.name
    model.functions.remove(function)
    return True


def _function(place: Place, model: Any) -> Any:
    return next((each for each in model.functions if function_place(each) == place), None)


def _renamed(function: Any, name: str) -> bytes:
    found = type(function)()
    found.CopyFrom(function)
    found.name = name
    return serialized(found)


def _overload(message: Any) -> str:
    return str(getattr(message, "overload", ""))


def remove_imports(imports: Iterable[Import], model: Any) -> tuple[Import, ...]:
    """Take out the imports of domains that no node is of.

    Returns those that are left.
    """
    return tuple(each for each in imports if not _remove(each, model))


def _remove(added: Import, model: Any) -> bool:
    """Whether the import is gone. That of the model serves its functions too, if they have none."""
    tops = dict(top_places(model))
    if added.place != GRAPH and added.place not in tops:
        return True
    holder = model if added.place == GRAPH else tops[added.place]
    users = list(tops.values()) if holder is model else [holder]
    if any(canonical_domain(node.domain) == added.domain for each in users for node in _nodes(each)):
        return False
    for index in reversed(range(len(holder.opset_import))):
        if canonical_domain(holder.opset_import[index].domain) == added.domain:
            del holder.opset_import[index]
    return True


def _nodes(container: Any) -> Iterator[Any]:
    """All nodes of a graph or function, and of the graphs within."""
    waiting = [container]
    while waiting:
        for node in waiting.pop().node:
            yield node
            waiting += graphs_of(node)
