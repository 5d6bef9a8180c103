"""Build subgraphs for attributes of emitted nodes, such as the body of a Loop."""

from collections.abc import Sequence

from opshift.adapters import CannotConvert, Rewriter
from opshift.model.element_types import BY_NUMBER
from opshift.model.messages import AttributeProto, ValueInfoProto
from opshift.model.node import Dims, Graph, Value

LOOP_OPSET, BFLOAT16_LOOP_OPSET = 13, 16
"""Opsets of Loops without and with bfloat16: Loop supports sequences since 13, bfloat16 since 16."""

Declaration = ValueInfoProto | Value
"""Input or output of a subgraph of the model, or of an emitted subgraph."""


class SubgraphBuilder(Rewriter):
    """Rewriter that emits into a subgraph; nodes may read values of the enclosing graph by name."""

    __slots__ = ("_inner", "_inputs", "_names", "_nodes_before", "_outputs")

    def __init__(self, out: Rewriter) -> None:
        super().__init__(out.facts, out.workspace, out.source, out.target, out.opset, out.default_opset)
        self.emit_opset, self.emit_domain = out.emit_opset, out.emit_domain
        self._inner: AttributeProto | None = None
        self._nodes_before = 0
        self._names: dict[str, str] = {}
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []

    def input(
        self, element_type: str, dims: Dims = None, name: str = "", origin: Declaration | None = None
    ) -> str:
        """Add an input with the doc string and metadata of `origin`, and return its name (fresh if `""`)."""
        self._inputs.append(Value(name or self.fresh("input"), element_type, dims, _message(origin)))
        return self._inputs[-1].name

    def output(
        self, name: str, element_type: str, dims: Dims = None, origin: Declaration | None = None
    ) -> None:
        """Add an output, which a node of the subgraph must produce, with the metadata of `origin`."""
        self._outputs.append(Value(name, element_type, dims, _message(origin)))

    def provide(self, name: str) -> str:
        """Return the name of the value to emit as the input `name` of the subgraph that `embed` embeds.

        If an enclosing graph has a value `name`, the result is a fresh name: nodes before the embedded
        subgraph may read that value, and ONNX forbids a second definition.
        """
        if self.facts.is_visible(name):
            self._names[name] = self.fresh(name)
        return self.embedded_name(name)

    def embedded_name(self, name: str) -> str:
        """Return the name in this graph of a value of the embedded subgraph, see `provide`."""
        return self._names.get(name, name)

    def embed(self, subgraph: AttributeProto | Graph) -> None:
        """Embed a subgraph after the nodes emitted so far; only its inputs may be renamed, see `provide`."""
        if isinstance(subgraph, Graph):
            self.emitted += subgraph.nodes
            if subgraph.embedded is not None:
                self._names.update(subgraph.embedded_names)
                self.embed(subgraph.embedded)
            self.emitted += subgraph.nodes_after
        else:
            self._inner, self._nodes_before = subgraph, len(self.emitted)

    def graph(self) -> Graph:
        """Return the subgraph with the inputs, nodes and outputs added so far."""
        nodes = tuple(self.emitted)
        split = len(nodes) if self._inner is None else self._nodes_before
        inputs, outputs = tuple(self._inputs), tuple(self._outputs)
        name, after = self.fresh("body"), nodes[split:]
        return Graph(name, inputs, outputs, nodes[:split], self._inner, after, tuple(self._names.items()))


class LoopBuilder(SubgraphBuilder):
    """Builder for a Loop that always runs for its trip count; `iteration` names the iteration number."""

    __slots__ = ("iteration",)

    def __init__(self, out: Rewriter) -> None:
        super().__init__(out)
        self.iteration = self.input("int64", ())
        condition = self.input("bool", ())
        self.output(self.emit("Identity", [condition], opset=1, domain=""), "bool", ())

    def emit_loop(
        self, trip_count: str, states: Sequence[str], out: Rewriter, outputs: int | Sequence[str] = 1
    ) -> tuple[str, ...]:
        """Emit the Loop into the enclosing graph, and return its results: final states, then scan outputs.

        `states` are the initial values of the loop-carried values.
        """
        names = outputs if not isinstance(outputs, int) else [out.fresh("loop") for _ in range(outputs)]
        unused = [] if states else [self._carry_unused_value()]
        inputs = [trip_count, out.constant(True, "bool"), *unused, *states]
        results = [*(out.fresh("idle") for _ in unused), *names]
        carried = " ".join(each.type for each in (*self._inputs, *self._outputs))
        opset = BFLOAT16_LOOP_OPSET if "bfloat16" in carried else LOOP_OPSET
        out.emit("Loop", inputs, results, opset=opset, domain="", body=self.graph())
        return tuple(names)

    def _carry_unused_value(self) -> str:
        """Add an unused loop-carried value, because Loop-1 requires one, and return its initial value."""
        unused = Value(self.fresh("idle"), "int64", ())
        self._inputs.insert(2, unused)
        self._outputs.insert(1, Value(self.emit("Identity", [unused.name], opset=1, domain=""), "int64", ()))
        return self.int64(0)


def _message(origin: Declaration | None) -> ValueInfoProto | None:
    """Return the message of the model with the doc string and the metadata of a value, or `None`."""
    return origin.origin if isinstance(origin, Value) else origin


def body_output_type(name: str, value: Declaration, out: Rewriter) -> str:
    """Return the declared element type of a subgraph output, or else the type of `name`, the node's output.

    Raises:
        CannotConvert: the element type is unknown.
    """
    if isinstance(value, Value):
        return value.type
    declared = BY_NUMBER.get(value.type.tensor_type.elem_type)
    found = declared.name if declared else out.known_element_type(name)
    if found is None:
        reason = f"the element type of {value.name!r}, an output of the body, is unknown"
        raise CannotConvert(reason, "unknown.element-type", remedy="declare the type of the body's output")
    return found
