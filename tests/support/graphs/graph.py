"""A graph that grows by one node at a time, each run as soon as it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper

from support.graphs.running import CannotRun, run_anywhere
from support.graphs.values import Kind, Shape, Value, as_tensor, is_float, random_data, type_proto

Draw = Callable[[st.SearchStrategy[Any]], Any]
FIRST_WITH_ANY_CONSTANT = 9
"""Before it, Constant holds floats only."""


class Graph:
    """Nodes, and the values that the next one may read; a body reads those of the graph around it too.

    A node that no runtime runs is left out again, so what has been drawn always runs.
    """

    def __init__(
        self,
        draw: Draw,
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
        self.odd: bool = parent.odd if parent else draw(st.integers(0, 9)) == 9
        self.empty: bool = parent.empty if parent else empty
        self.nodes: list[onnx.NodeProto] = []
        self.values: list[Value] = []
        self.feeds: dict[str, Any] = {}
        self.initializers: dict[str, Any] = {}
        self.overridable: set[str] = set()
        self._names: Iterator[int] = parent._names if parent else iter(range(10**9))

    @property
    def opset(self) -> int:
        """Of the default domain."""
        return self.opsets[""]

    def visible(self) -> Iterator[Value]:
        """The values of this graph and of those around it."""
        here: Graph | None = self
        while here is not None:
            yield from here.values
            here = here.parent

    def name(self, hint: str) -> str:
        """A name that nothing else has."""
        return f"{hint}{next(self._names)}"

    def chance(self, percent: int) -> bool:
        """True so often."""
        found: bool = self.draw(st.integers(0, 99)) < percent
        return found

    def draw_size(self) -> int:
        """A small number of things."""
        found: int = self.draw(st.integers(1, 3))
        return found

    def one_of(self, options: Sequence[Any]) -> Any:
        """One of several."""
        return options[0] if len(options) == 1 else self.draw(st.sampled_from(options))

    def pick(self, fits: Callable[[Value], bool]) -> Value | None:
        """A value that is there already."""
        fitting = [each for each in self.visible() if (self.empty or 0 not in each.shape) and fits(each)]
        return self.one_of(fitting) if fitting else None

    def data(self, element: str, shape: Shape, kind: Kind = "any") -> Value:
        """A new tensor: an input, an initializer or a Constant."""
        array = random_data(self.random, element, shape, kind, self.odd)
        ways = ["initializer", "constant"] if self.parent else ["input", "input", "initializer", "constant"]
        return self._given(array, self.one_of(ways), "x")

    def parameter(self, value: Any, element: str) -> Value:
        """A tensor that tells a node what to do: mostly constant, sometimes given or computed."""
        ways = ["initializer"] * 4 + ["constant"] * 2 + ["identity"]
        if self.parent is None:
            ways += ["input", "overridable"]
        return self._given(as_tensor(value, element), self.one_of(ways), "p")

    def _given(self, array: Any, way: str, hint: str) -> Value:
        value = Value(self.name(hint), array)
        if way == "identity":
            source = self._given(array, "initializer", hint)
            return (self.add("Identity", [source], 1) or [source])[0]
        if way == "constant" and (self.opset >= FIRST_WITH_ANY_CONSTANT or is_float(value.type)):
            tensor = onnx.numpy_helper.from_array(array)
            self.nodes.append(helper.make_node("Constant", [], [value.name], value=tensor))
        elif way == "input":
            self.feeds[value.name] = array
        else:
            self.initializers[value.name] = array
            if way == "overridable":
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
        """Add a node and give its outputs; `None` if no runtime runs it.

        `outputs` says how many there are, or of each whether it is there.
        """
        listed = [True] * outputs if isinstance(outputs, int) else outputs
        names = [self.name("v") if each else "" for each in listed]
        read = [each.name if each else "" for each in inputs]
        node = helper.make_node(op_type, read, names, domain=domain)
        for name, each in (attributes or {}).items():
            made = each if isinstance(each, onnx.AttributeProto) else helper.make_attribute(name, each)
            node.attribute.append(made)
        return self.add_nodes([node], [name for name in names if name], exact=exact)

    def add_nodes(
        self, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], *, exact: bool = True
    ) -> list[Value] | None:
        """Add nodes of whose outputs others may read some; `None` if no runtime runs them."""
        captured = _free_in(nodes, outputs)
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
        made = [Value(name, data, exact) for name, data in zip(outputs, results, strict=True)]
        self.nodes += nodes
        self.values += made
        return made

    def model_of(self, graph: onnx.GraphProto) -> onnx.ModelProto:
        """A model of one graph, with this graph's opset imports and IR version."""
        imports = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        model = helper.make_model(graph, opset_imports=imports)
        model.ir_version = self.ir_version
        return model


def _free_in(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], made: Sequence[str] = ()) -> set[str]:
    """What nodes, and the graphs in them, read from around them."""
    known, read = set(made), set(outputs)
    for node in nodes:
        read.update(filter(None, node.input))
        known.update(node.output)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                inner = attribute.g
                names = [each.name for each in (*inner.input, *inner.initializer)]
                read |= _free_in(inner.node, [each.name for each in inner.output], names)
    return read - known
