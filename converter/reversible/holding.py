"""One graph or function of a model: which node makes a value, and which read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import cached_property
from hashlib import blake2b
from typing import Any

from opshift.adapters.elsewhere import serialized
from opshift.converter.container import graphs_of
from opshift.registry.names import canonical_domain

OUTSIDE = -1
"""In the place of a node: what returns or refers to a value without being a node."""


class Holding:
    """The nodes and constants of one graph or function, as they are."""

    def __init__(self, container: Any) -> None:
        self.container = container
        self.nodes = list(container.node)
        self.makers = {
            name: index for index, node in enumerate(self.nodes) for name in node.output[:] if name
        }
        self._reads: dict[int, frozenset[str]] = {}

    @cached_property
    def initializers(self) -> dict[str, Any]:
        """TensorProto by name."""
        return {each.name: each for each in getattr(self.container, "initializer", ())}

    @cached_property
    def readers(self) -> dict[str, set[int]]:
        """The positions of the nodes that read a value, themselves or in graphs that they hold."""
        found: dict[str, set[int]] = {}
        for index in range(len(self.nodes)):
            for name in self.reads(index):
                found.setdefault(name, set()).add(index)
        for name in _referred(self.container):
            found.setdefault(name, set()).add(OUTSIDE)
        return found

    def reads(self, position: int) -> frozenset[str]:
        """The names that a node reads, itself or in graphs that it holds."""
        if position not in self._reads:
            self._reads[position] = frozenset(names_read(self.nodes[position]))
        return self._reads[position]

    def has_constant(self, name: str) -> bool:
        """Whether an initializer, or a Constant node, has the name."""
        return name in self.initializers or (
            name in self.makers and self.nodes[self.makers[name]].op_type == "Constant"
        )

    def digest(self, group: Sequence[str], constants: Set[str]) -> str | None:
        """A digest of the nodes that make these values and of what they read of `constants`.

        `None` if some are not there.
        """
        if not all(name in self.makers for name in group):
            return None
        positions = [self.makers[name] for name in group]
        read = sorted(constants & frozenset[str]().union(*map(self.reads, positions)))
        if not all(map(self.has_constant, read)):
            return None
        tensors = [self.initializers.get(name) or self.nodes[self.makers[name]] for name in read]
        return _digest_of([self.nodes[each] for each in positions] + tensors)


def _digest_of(messages: Sequence[Any]) -> str:
    found = blake2b(digest_size=8)
    for each in messages:
        data = serialized(each)
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()


def names_read(node: Any) -> Iterator[str]:
    """The names that a NodeProto reads, and what it holds; those made within are among them."""
    yield from node.input[:]
    for graph in graphs_of(node):
        yield from names_read_in(graph)


def names_made(node: Any) -> Iterator[str]:
    """The names that a NodeProto gives, itself and in graphs that it holds."""
    yield from node.output
    for graph in graphs_of(node):
        yield from (each.name for each in (*graph.input, *graph.initializer))
        for inner in graph.node:
            yield from names_made(inner)


def names_read_in(graph: Any) -> Iterator[str]:
    """The names that a graph reads, takes or returns."""
    yield from _referred(graph)
    for node in graph.node:
        yield from names_read(node)


def free_names(node: Any) -> set[str]:
    """The values that a NodeProto reads, itself or in graphs that it holds, and that are made outside it."""
    found = set(node.input)
    for graph in graphs_of(node):
        made = {each.name for each in (*graph.input, *graph.initializer)}
        for inner in graph.node:
            found |= free_names(inner) - made
            made.update(inner.output)
        found |= {value.name for value in graph.output} - made
    return found - {""}


def domains_of(node: Any) -> set[str]:
    """The domains of a NodeProto and of the nodes in graphs that it holds."""
    within = (domains_of(inner) for graph in graphs_of(node) for inner in graph.node)
    return {canonical_domain(node.domain)}.union(*within)


def first_output(node: Any) -> str:
    """The first output that has a name, by which the node is found; empty if there is none."""
    return next(filter(None, node.output), "")


def _referred(container: Any) -> Iterator[str]:
    """The names that a graph or function uses outside its nodes."""
    for value in (*container.input, *container.output):
        yield value if isinstance(value, str) else value.name
    for annotation in getattr(container, "quantization_annotation", ()):
        yield annotation.tensor_name
        yield from (each.value for each in annotation.quant_parameter_tensor_names)
