"""A graph for an attribute of an emitted node, such as the body of a Loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Emitted, Rewriter
from opshift.registry.element_types import BY_NUMBER

Dims = tuple[int | None, ...] | None


class Value(NamedTuple):
    """An input or output of a graph; its type is `float` for a tensor, else `seq(tensor(float))` and such."""

    name: str
    type: str
    dims: Dims


@dataclass(frozen=True)
class Graph:
    """What an adapter gives as a graph attribute. Its nodes are converted on from the opset of each.

    Attributes:
        inner: the AttributeProto of a graph of the model, whose nodes, constants and value information
            stand here as well, between `nodes` and `after`; its own inputs are made by `nodes`.
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[Emitted, ...]
    inner: Any = None
    after: tuple[Emitted, ...] = ()


class Body(Rewriter):
    """Emits into a graph; it reads what the graph around it makes by name, as ONNX has it."""

    __slots__ = ("_ahead", "_inner", "_inputs", "_outputs")

    def __init__(self, out: Rewriter) -> None:
        super().__init__(out.facts, out.source, out.target, out.opset, out.default_opset)
        self._inner: Any = None
        self._ahead = 0
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []

    def input(self, element_type: str, dims: Dims = None, name: str = "") -> str:
        """The name of a new input; a graph of the model reads it by the name that it gives."""
        self._inputs.append(Value(name or self.fresh("input"), element_type, dims))
        return self._inputs[-1].name

    def output(self, name: str, element_type: str, dims: Dims = None) -> None:
        """Return a value, which the graph itself makes."""
        self._outputs.append(Value(name, element_type, dims))

    def enclose(self, attribute: Any) -> None:
        """Let a graph of the model run behind what is emitted so far; it is read by the names it gives."""
        self._inner, self._ahead = attribute, len(self.emitted)

    def graph(self) -> Graph:
        """The graph as it is now."""
        nodes = tuple(self.emitted)
        ahead = len(nodes) if self._inner is None else self._ahead
        inputs, outputs = tuple(self._inputs), tuple(self._outputs)
        return Graph(self.fresh("body"), inputs, outputs, nodes[:ahead], self._inner, nodes[ahead:])


class LoopBody(Body):
    """The body of a Loop that goes on for as many turns as it is told."""

    __slots__ = ("turn",)

    def __init__(self, out: Rewriter) -> None:
        super().__init__(out)
        self.turn = self.input("int64", ())
        goes_on = self.input("bool", ())
        self.output(self.emit("Identity", [goes_on], opset=1, domain=""), "bool", ())

    def run(
        self, turns: str, states: Sequence[str], out: Rewriter, outputs: int | Sequence[str] = 1
    ) -> tuple[str, ...]:
        """Emit the Loop, whose first states are `states`: an input and an output of the body for each."""
        names = outputs if not isinstance(outputs, int) else [out.fresh("loop") for _ in range(outputs)]
        idle = [] if states else [self._carry_something()]
        inputs = [turns, out.constant(True, "bool"), *idle, *states]
        results = [*(out.fresh("idle") for _ in idle), *names]
        carried = " ".join(each.type for each in (*self._inputs, *self._outputs))
        opset = WITH_BFLOAT16 if "bfloat16" in carried else LOOP
        out.emit("Loop", inputs, results, opset=opset, domain="", body=self.graph())
        return tuple(names)

    def _carry_something(self) -> str:
        """A value that serves nothing but that Loop-1 wants a state; what it is at first."""
        idle = Value(self.fresh("idle"), "int64", ())
        self._inputs.insert(2, idle)
        self._outputs.insert(1, Value(self.emit("Identity", [idle.name], opset=1, domain=""), "int64", ()))
        return self.constant(0, "int64")


def returned_type(name: str, value: Any, out: Rewriter) -> str:
    """The element type of what a graph of the model returns as `value`, and its node as `name` if it does.

    Raises:
        CannotConvert: it is not known.
    """
    stated = BY_NUMBER.get(value.type.tensor_type.elem_type)
    found = stated.name if stated else out.known_element_type(name)
    if found is None:
        raise CannotConvert(
            f"the element type of {value.name!r}, which its body returns, is not known",
            remedy="state it in the body's output",
        )
    return found


LOOP, WITH_BFLOAT16 = 13, 16
"""The opset that a Loop is written for: the first that carries what it does, so that older ones refuse it."""
