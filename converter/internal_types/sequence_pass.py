"""Pass over the nodes of one graph or function that replaces its sequences by their tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple

from opshift.adapters.core.rewriter import MAX_NODES, require_at_most
from opshift.converter.unknown_shapes import UnknownShapeRemedies
from opshift.inference.scope import Scope
from opshift.model.attributes import INT, INTS, graphs_in
from opshift.model.errors import CannotConvert, UnknownShape
from opshift.model.graphs import (
    Container,
    ContainerProto,
    captured_names,
    graphs_of,
    names_outside_nodes,
    node_place,
    remove_messages,
    too_many_nodes,
)
from opshift.model.messages import GraphProto, NodeProto
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.types import Shape
from opshift.rewriting.constant_nodes import add_constant_node
from opshift.rewriting.validation import validate_axes, validate_node
from opshift.rewriting.workspace import Allowances, FreshNames, NodeNames

Tensors = tuple[str, ...]
"""Names of the tensors in a sequence."""

OPERATORS_WITH_LIST_INPUTS = ("Split", "Squeeze", "Unsqueeze")
"""Operators with a list of sizes or axes, which is an attribute in old opsets."""

LISTS_ARE_INPUTS_SINCE = 13
"""First opset in which these lists are inputs."""


class Stack(NamedTuple):
    """Tensor that stacks the tensors of a sequence along a new first axis, and their shape if it is known."""

    tensor: str
    shape: Shape | None


MAX_WORK = 1 << 20
"""Maximum of `Context.work`, because unrolled loops multiply the nodes and sequences of a model."""

REMEDY = (
    "work on the tensors themselves, with Split and Concat, or convert to opset 13 or later "
    "(11 without sequences in subgraphs)"
)


@dataclass
class Context:
    """State that the passes over one model share.

    Attributes:
        operators: functions that replace the nodes of operators of the default domain.
        allowances: deviations that the caller allows.
        fresh_names: generator of new names.
        max_added: maximum number of nodes to add to the model.
        added: number of nodes added so far.
        work: steps so far: lengths of recorded and concatenated sequences, and costs of copied loop bodies.
        sequence_count: number of sequences so far.
        unknown_shapes: finder of the causes of unknown shapes, for remedies.
    """

    operators: Mapping[str, Callable[[NodeProto, SequencePass], None]]
    allowances: Allowances
    max_added: int
    fresh_names: FreshNames = field(default_factory=FreshNames)
    added: int = 0
    work: int = 0
    sequence_count: int = 0
    unknown_shapes: UnknownShapeRemedies = field(default_factory=partial(UnknownShapeRemedies, ""))

    def spend(self, length: int) -> None:
        """Add a number of steps to `work`; refuse to exceed `MAX_WORK`."""
        self.work += length
        if self.work > MAX_WORK:
            reason = f"replacing the sequences and unrolling their loops needs more than {MAX_WORK:,} steps"
            raise CannotConvert(reason, "limit.exceeded", remedy=REMEDY)

    def count_added(self, count: int) -> None:
        """Add to the number of added nodes; refuse to exceed `max_added`."""
        self.added += count
        if self.added > self.max_added:
            raise too_many_nodes(self.max_added)


class SequencePass:
    """Pass that replaces the sequences in a graph or function by their tensors.

    Attributes:
        scope: facts about the original values, and about values that the pass adds.
        names: number of definitions of each name in the outermost graph and its subgraphs.
        node_names: names of the nodes, which copies of unrolled nodes must not repeat.
        result: graph or function that receives the new nodes.
        sequences: tensors of each sequence, by name, also in enclosing graphs.
        stacks: stack of each sequence whose length is known only at run time, also in enclosing graphs.
        reasons: reasons why nodes cannot be replaced, by place.
    """

    def __init__(
        self,
        scope: Scope,
        path: str,
        context: Context,
        names: Counter[str],
        outer: SequencePass | None = None,
        *,
        is_inlined: bool = False,
    ) -> None:
        """Create a pass over a graph or function; if `is_inlined`, only `outer` counts the added nodes."""
        self.scope = scope
        self.context = context
        self.names = names
        self.node_names = NodeNames(scope.container.node)
        self.result: ContainerProto = type(scope.container)()
        self.reasons: dict[str, CannotConvert] = {}
        self._path = path
        self._is_inlined = is_inlined
        self._stacks_of_tensors: dict[Tensors, str] = {}
        self._equal_shapes: dict[Tensors, bool] = {}
        scope.defined_names.update(chain.from_iterable(node.output for node in scope.container.node))
        own = scope.defined_names
        self.sequences: dict[str, Tensors] = {}
        self.stacks: dict[str, Stack] = {}
        if outer is not None:
            self.sequences |= {name: each for name, each in outer.sequences.items() if name not in own}
            self.stacks |= {name: each for name, each in outer.stacks.items() if name not in own}

    def run(self) -> None:
        """Write the new nodes to `result`, and the reasons for refusal to `reasons`."""
        for proto in self.scope.container.node:
            before = len(self.result.node)
            try:
                self.context.count_added(0)
                self._replace_node(proto)
                if not self._is_inlined:
                    self.context.count_added(max(len(self.result.node) - before - 1, 0))
            except CannotConvert as error:
                if isinstance(error, UnknownShape):
                    error.remedy = self.context.unknown_shapes.remedy(error, self.scope, proto.input)
                self.reasons.setdefault(self.place_of(proto), error)

    def write_to(self, container: ContainerProto) -> None:
        """Move the new nodes to a copy of the graph or function; refuse sequences among the outputs."""
        for name in filter(self.is_sequence, Container(container).outputs):
            record = self.scope.producing_records.get(name)
            place = self._path if record is None else self.place_of(self.scope.proto_of(record))
            reason = f"the graph or function returns sequence {name!r}"
            self.reasons[place] = CannotConvert(reason, "sequence.visible", remedy=REMEDY)
        self._remove_unread_nodes(container)
        del container.node[:]
        container.node.extend(self.result.node)
        values = getattr(container, "value_info", ())
        if values:
            remove_messages(values, [self.is_sequence(value.name) for value in values])

    def tensors(self, name: str) -> Tensors:
        """Return the tensors of a sequence; refuse the node that reads it if they are unknown."""
        found = self.tensors_if_sequence(name)
        if found is None:
            reason = f"the tensors of sequence {name!r} are known only at run time"
            raise CannotConvert(reason, "sequence.dynamic", remedy=REMEDY)
        return found

    def tensors_if_sequence(self, name: str) -> Tensors | None:
        """Return the tensors of a sequence, `None` for another value; refuse sequences of unknown length."""
        if name in self.stacks:
            reason = f"the number of tensors in sequence {name!r} is known only at run time"
            raise CannotConvert(reason, "sequence.dynamic", remedy=REMEDY)
        return self.sequences.get(name)

    def is_sequence(self, name: str) -> bool:
        """Return whether a value is a sequence that the pass replaces."""
        return name in self.sequences or name in self.stacks

    def set_sequence(self, name: str, tensors: Iterable[str]) -> None:
        """Record the tensors that a sequence contains."""
        found = tuple(tensors)
        self.context.spend(len(found) + 1)
        self.context.sequence_count += 1
        if name:
            self.sequences[name] = found

    def set_stack(self, name: str, stack: Stack) -> None:
        """Record the tensor that stacks the tensors of a sequence."""
        self.context.spend(1)
        self.context.sequence_count += 1
        self.stacks[name] = stack

    def element(self, name: str) -> str:
        """Return a name by which subgraphs can read a tensor; emit an Identity if the name is not unique."""
        return name if self.names[name] <= 1 else self.emit("Identity", [name])

    def require_at_most(self, count: int, added: str) -> None:
        """Refuse more than `MAX_NODES` added nodes, tensors or iterations, unless the caller allows it."""
        require_at_most(count, MAX_NODES, added, self.context.allowances)

    def fresh(self, hint: str) -> str:
        """Return an unused name."""
        return self.context.fresh_names.fresh(hint)

    def emit(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: Sequence[str] = (),
        *,
        origin: NodeProto | None = None,
        **attributes: int | Sequence[int],
    ) -> str:
        """Add a node and return its first output, by default a new value.

        A list in `attributes` becomes an input at opsets where the operator has such an input. The new node
        inherits the name, doc string and metadata of `origin`.
        """
        inputs, outputs = [*inputs], outputs or [self.fresh(op_type.lower())]
        has_inputs = (
            op_type in OPERATORS_WITH_LIST_INPUTS and self.scope.opset_of("") >= LISTS_ARE_INPUTS_SINCE
        )
        numbers = {}
        for key, value in attributes.items():
            if isinstance(value, int) or not has_inputs:
                numbers[key] = value
            else:
                inputs.append(self.constant(Tensor("int64", (len(value),), tuple(value))))
        node = self.result.node.add()
        if origin is not None:
            node.CopyFrom(origin)
            del node.input[:], node.output[:], node.attribute[:]
        node.op_type = op_type
        node.input.extend(inputs)
        node.output.extend(outputs)
        for key, value in numbers.items():
            if isinstance(value, int):
                node.attribute.add(name=key, type=INT, i=value)
            else:
                node.attribute.add(name=key, type=INTS, ints=value)
        self.scope.replace_producer(Node.from_proto(node))
        return outputs[0]

    def stack(
        self,
        tensors: Sequence[str],
        axis: int,
        outputs: Sequence[str] = (),
        origin: NodeProto | None = None,
    ) -> str:
        """Add nodes that concatenate tensors along a new axis, and return the result."""
        self.require_at_most(len(tensors) + 1, "nodes")
        wide = [self.emit("Unsqueeze", [tensor], axes=[axis]) for tensor in tensors]
        return self.emit("Concat", wide, outputs, origin=origin, axis=axis)

    def stack_once(self, tensors: Tensors) -> str:
        """Return the tensors of a sequence, concatenated along a new first axis; emit the nodes once."""
        if tensors not in self._stacks_of_tensors:
            self._stacks_of_tensors[tensors] = self.stack(tensors, 0)
        return self._stacks_of_tensors[tensors]

    def have_equal_shapes(self, tensors: Tensors) -> bool:
        """Return whether all shapes are known and equal; cached, because many nodes may read a sequence."""
        if tensors not in self._equal_shapes:
            shapes = {self.scope.shape(tensor) for tensor in tensors}
            is_known = all(shape is not None and None not in shape for shape in shapes)
            self._equal_shapes[tensors] = len(shapes) == 1 and is_known
        return self._equal_shapes[tensors]

    def constant(self, tensor: Tensor, name: str = "") -> str:
        """Add a Constant node and return the name of its output."""
        name = name or self.fresh("const")
        add_constant_node(self.result, name, tensor)
        self.scope.replace_producer(Node("Constant", (), (name,), {"value": tensor}))
        return name

    def nested(
        self, graph: GraphProto, attribute: str, owner: NodeProto, *, is_inlined: bool = False
    ) -> SequencePass:
        """Return a pass over a subgraph in an attribute of a node; `is_inlined` is as for `SequencePass`."""
        scope = self.scope.child(graph)
        scope.owner = owner
        path = f"{self._path} / {owner.name or owner.op_type}.{attribute}"
        return SequencePass(scope, path, self.context, self.names, self, is_inlined=is_inlined)

    def copy_node(self, proto: NodeProto) -> tuple[NodeProto, list[tuple[SequencePass, GraphProto]]]:
        """Add a copy of a node, and return it with a pass over each subgraph and the copy of the subgraph."""
        copy = self.result.node.add()
        copy.CopyFrom(proto)
        return copy, [
            (self.nested(graph, attribute.name, proto), new)
            for attribute, changed in zip(proto.attribute, copy.attribute, strict=True)
            for graph, new in zip(graphs_in(attribute), graphs_in(changed), strict=True)
        ]

    def keep(self, proto: NodeProto) -> None:
        """Add a copy of a node that reads no sequences, and replace the sequences in its subgraphs."""
        for name in proto.input:
            if self.is_sequence(name):
                reason = f"{proto.op_type} reads sequence {name!r} as a whole"
                raise CannotConvert(reason, "sequence.visible", remedy=REMEDY)
        for inner, graph in self.copy_node(proto)[1]:
            inner.run()
            self.finish(inner, graph)

    def finish(self, inner: SequencePass, graph: GraphProto) -> None:
        """Move the new nodes of a subgraph to the copy of the subgraph."""
        inner.write_to(graph)
        self.reasons |= inner.reasons

    def _remove_unread_nodes(self, container: ContainerProto) -> None:
        """Remove added nodes without readers: a model may need only the length of a sequence."""
        read = set(names_outside_nodes(container))
        is_removed = []
        for node in reversed(self.result.node):
            is_added = node.output and self.context.fresh_names.created.issuperset(node.output)
            is_removed.append(bool(is_added) and read.isdisjoint(node.output))
            if not is_removed[-1]:
                read.update(node.input)
                for graph in graphs_of(node):
                    read.update(captured_names(graph))
        remove_messages(self.result.node, is_removed[::-1])

    def _replace_node(self, proto: NodeProto) -> None:
        replace = self.context.operators.get(proto.op_type)
        operator = self.scope.operator(proto.op_type, proto.domain) if replace else None
        if replace is None or operator is None or operator.domain != DEFAULT_DOMAIN:
            self.keep(proto)
        else:
            node = Node.from_proto(proto)
            validate_node(node, operator)
            validate_axes(node, operator, self.scope)
            replace(proto, self)

    def place_of(self, proto: NodeProto) -> str:
        """Return the place of a node in messages: its graph or function, and its label."""
        return node_place(self._path, proto)
