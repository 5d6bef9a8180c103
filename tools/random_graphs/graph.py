"""A graph that grows by one node at a time; each node runs as soon as it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import onnx
from onnx import helper

from random_graphs.execution import CannotRun, run_anywhere
from random_graphs.values import Kind, Shape, Value, as_tensor, is_float, random_data, type_proto

MIN_OPSET_ANY_CONSTANT = 9
"""Before this opset, Constant supports floats only."""


class Sampler(Protocol):
    """Source of random choices."""

    def integer(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""

    def pick(self, choices: Sequence[Any]) -> Any:
        """Return one of the choices."""

    def distinct(self, choices: Sequence[Any], least: int, most: int) -> list[Any]:
        """Return some of the choices in any order, each at most once."""


class Graph:
    """Nodes, and the values that the next node may read; subgraphs also read values of enclosing graphs.

    Nodes that no runtime runs are dropped, so a drawn graph always runs.
    """

    def __init__(
        self,
        draw: Sampler,
        opsets: Mapping[str, int],
        ir_version: int,
        seed: int,
        *,
        empty: bool = False,
        parent: Graph | None = None,
    ) -> None:
        self.draw = draw
        self.opsets = opsets
        self.ir_version = ir_version
        self.parent = parent
        self.random: np.random.Generator = parent.random if parent else np.random.default_rng(seed)
        self.special: bool = parent.special if parent else draw.integer(0, 9) == 9
        self.empty: bool = parent.empty if parent else empty
        self.nodes: list[onnx.NodeProto] = []
        self.values: list[Value] = []
        self.feeds: dict[str, Any] = {}
        self.initializers: dict[str, Any] = {}
        self.overridable: set[str] = set()
        self._names: Iterator[int] = parent._names if parent else iter(range(10**9))

    @property
    def opset(self) -> int:
        """The opset of the default domain."""
        return self.opsets[""]

    def visible(self) -> Iterator[Value]:
        """Yield the values of this graph and of enclosing graphs."""
        graph: Graph | None = self
        while graph is not None:
            yield from graph.values
            graph = graph.parent

    def name(self, hint: str) -> str:
        """Return a unique name."""
        return f"{hint}{next(self._names)}"

    def chance(self, percent: int) -> bool:
        """Draw a boolean that is true with a probability in percent."""
        return self.draw.integer(0, 99) < percent

    def generate_size(self) -> int:
        """Draw a small count."""
        return self.draw.integer(1, 3)

    def one_of(self, options: Sequence[Any]) -> Any:
        """Draw one of several options."""
        return options[0] if len(options) == 1 else self.draw.pick(options)

    def pick(self, fits: Callable[[Value], bool]) -> Value | None:
        """Draw an existing value, or return `None` if none fits."""
        candidates = [each for each in self.visible() if (self.empty or 0 not in each.shape) and fits(each)]
        return self.one_of(candidates) if candidates else None

    def data(self, element_type: str, shape: Shape, kind: Kind = "any") -> Value:
        """Add a new tensor as an input, an initializer or a Constant."""
        array = random_data(self.random, element_type, shape, kind, self.special)
        sources = (
            ["initializer", "constant"] if self.parent else ["input", "input", "initializer", "constant"]
        )
        return self.tensor(array, self.one_of(sources), "x")

    def parameter(self, value: Any, element_type: str) -> Value:
        """Add a tensor that parametrizes a node: mostly constant, sometimes an input or computed."""
        sources = ["initializer"] * 4 + ["constant"] * 2 + ["identity"]
        if self.parent is None:
            sources += ["input", "overridable"]
        return self.tensor(as_tensor(value, element_type), self.one_of(sources), "p")

    def tensor(self, array: Any, source_kind: str, hint: str = "x") -> Value:
        """Add a tensor as an `input`, `initializer`, `constant`, `overridable` input or `identity` of one."""
        value = Value(self.name(hint), array)
        if source_kind == "identity":
            source = self.tensor(array, "initializer", hint)
            return (self.add("Identity", [source], 1) or [source])[0]
        if source_kind == "constant" and (self.opset >= MIN_OPSET_ANY_CONSTANT or is_float(value.type)):
            tensor = onnx.numpy_helper.from_array(array)
            self.nodes.append(helper.make_node("Constant", [], [value.name], value=tensor))
        elif source_kind == "input":
            self.feeds[value.name] = array
        else:
            self.initializers[value.name] = array
            if source_kind == "overridable":
                self.overridable.add(value.name)
        self.values.append(value)
        return value

    def add(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        outputs: int | Sequence[bool],
        attributes: Mapping[str, Any] | None = None,
        domain: str = "",
        *,
        exact: bool = True,
    ) -> list[Value] | None:
        """Add a node and return its outputs, or `None` if no runtime runs it.

        `outputs` is the number of outputs, or whether each output is present.
        """
        present = [True] * outputs if isinstance(outputs, int) else outputs
        names = [self.name("v") if each else "" for each in present]
        read = [each.name if each else "" for each in inputs]
        node = helper.make_node(op_type, read, names, domain=domain)
        for name, each in (attributes or {}).items():
            proto = each if isinstance(each, onnx.AttributeProto) else helper.make_attribute(name, each)
            node.attribute.append(proto)
        return self.add_nodes([node], [name for name in names if name], exact=exact)

    def add_nodes(
        self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], *, exact: bool = True
    ) -> list[Value] | None:
        """Add nodes and return the listed outputs, or `None` if no runtime runs them."""
        captured = _free_values(nodes, outputs)
        read = {each.name: each for each in self.visible() if each.name in captured}
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_value_info(n, type_proto(v.data, v.shape)) for n, v in read.items()],
            [onnx.ValueInfoProto(name=name) for name in outputs],
        )
        try:
            results = run_anywhere(self.model_of(graph), {name: each.data for name, each in read.items()})
        except CannotRun:
            return None
        exact = exact and all(each.exact for each in read.values())
        added = [Value(name, data, exact) for name, data in zip(outputs, results, strict=True)]
        self.nodes += nodes
        self.values += added
        return added

    def model_of(self, graph: onnx.GraphProto) -> onnx.ModelProto:
        """Return a model of one graph with the opset imports and IR version of this graph."""
        imports = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        model = helper.make_model(graph, opset_imports=imports)
        model.ir_version = self.ir_version
        return model


def _free_values(
    nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], produced: Sequence[str] = ()
) -> set[str]:
    """Return the names that nodes and their subgraphs read from enclosing graphs."""
    known, read = set(produced), set(outputs)
    for node in nodes:
        read.update(filter(None, node.input))
        known.update(node.output)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                inner = attribute.g
                names = [each.name for each in (*inner.input, *inner.initializer)]
                read |= _free_values(inner.node, [each.name for each in inner.output], names)
    return read - known
