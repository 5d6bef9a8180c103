"""Find the node of a model that a node of its converted copy replaces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from opshift.model.messages import ModelProto
from opshift.registry.registry import Registry
from opshift.runtimes.model_nodes import ModelNodes


class ReplacedNodes:
    """Search for the nodes of a model that nodes of its converted copy replace."""

    def __init__(self, nodes: ModelNodes, converted: ModelProto, registry: Registry) -> None:
        self._nodes = nodes
        self._converted = converted
        self._registry = registry
        self._own = {each.place for each in nodes.nodes}

    def places(self, places: Iterable[str]) -> tuple[str, ...]:
        """Return the places of nodes; an added node gets the place of the node that it helps to replace."""
        return tuple(dict.fromkeys(each if each in self._own else self._original(each) for each in places))

    @cached_property
    def _producers(self) -> dict[tuple[str, str], str]:
        """Places of the nodes of the model, by their graph or function and the names of their outputs."""
        return {
            (_container(each.place), name): each.place
            for each in self._nodes.nodes
            for name in each.node.outputs
        }

    @cached_property
    def _copies(self) -> tuple[dict[str, tuple[str, ...]], dict[tuple[str, str], list[str]]]:
        """Outputs of the nodes in the copy by place, and places of the readers by container and value."""
        outputs: dict[str, tuple[str, ...]] = {}
        readers: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for each in ModelNodes(self._converted, self._registry).nodes:
            outputs[each.place] = tuple(each.node.outputs)
            for name in each.node.inputs:
                readers[_container(each.place), name].append(each.place)
        return outputs, readers

    def _original(self, place: str) -> str:
        """Follow the readers of an added node up to a value of the model, and name the node that computes it.

        The last of the nodes that replace a node computes its outputs, with their names.
        """
        outputs, readers = self._copies
        container, waiting, seen = _container(place), [place], {place}
        for current in waiting:
            for name in outputs.get(current, ()):
                if found := self._producers.get((container, name)):
                    return f"{found} (a node that replaces it)"
                new = [each for each in readers[container, name] if each not in seen]
                seen.update(new)
                waiting += new
        return place


def _container(place: str) -> str:
    return place.rpartition(", node ")[0]
