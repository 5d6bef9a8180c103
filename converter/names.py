"""All names of values in a model, so that a new one clashes with none, in any graph."""

from __future__ import annotations

from typing import Any


class Names:
    """The names of one model; they are collected when the first new one is asked for."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._taken: set[str] | None = None
        self._next: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """A name that starts with `hint` and that no value of the model has."""
        if self._taken is None:
            self._taken = _all_names(self._model)
        number = self._next.get(hint, 0)
        name = f"{hint}_{number}" if number else hint
        while name in self._taken:
            number += 1
            name = f"{hint}_{number}"
        self._next[hint] = number + 1
        self._taken.add(name)
        return name


def _all_names(model: Any) -> set[str]:
    found: set[str] = set()
    graphs = [model.graph]
    for info in model.training_info:
        graphs += [info.initialization, info.algorithm]
    nodes: list[Any] = []
    for function in model.functions:
        found.update(function.input)
        found.update(function.output)
        nodes.append(function.node)
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            _add_values(graph, found)
            nodes.append(graph.node)
        for node in nodes.pop():
            found.update(node.input)
            found.update(node.output)
            for attribute in node.attribute:
                if attribute.type in (5, 10) or attribute.HasField("g") or attribute.graphs:
                    graphs += [attribute.g, *attribute.graphs]
    return found


def _add_values(graph: Any, found: set[str]) -> None:
    found.update(value.name for value in graph.input)
    found.update(value.name for value in graph.output)
    found.update(value.name for value in graph.value_info)
    found.update(value.name for value in graph.initializer)
    found.update(value.values.name for value in graph.sparse_initializer)
