"""Facts about values: what adapters may query, and what the helpers of a scope use of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar

from opshift.model.graphs import ContainerProto, NodeRecord
from opshift.model.messages import GraphProto, NodeProto, SparseTensorProto, TensorProto
from opshift.model.node import Node, Tensor
from opshift.model.types import Shape
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry

FactT = TypeVar("FactT")


class Facts(Protocol):
    """Facts about the values of a model before its conversion."""

    def element_type(self, name: str) -> str | None:
        """Return an element type such as `float16`, or a type string if the value is not a tensor.

        `None` if the type is unknown.
        """
        ...

    def shape(self, name: str) -> Shape | None:
        """Return the dimensions of a tensor, `None` for each unknown one; `None` if the rank is unknown."""
        ...

    def rank(self, name: str) -> int | None:
        """Return the rank of a tensor, or `None` if it is unknown."""
        ...

    def nested_shape(self, graph: GraphProto, name: str) -> Shape | None:
        """Return the dimensions of a value of a GraphProto held by a node, in the form of `shape`."""
        ...

    def constant(self, name: str) -> Tensor | None:
        """Return the value if it is the same in every run, else `None`."""
        ...

    def is_used(self, name: str) -> bool:
        """Return whether a node reads the value or the graph returns it."""
        ...


class Producer(NamedTuple):
    """Node that produces a value.

    Attributes:
        node: the node.
        position: position of the value among its outputs.
        operator: its operator version; `None` if the registry does not contain it.
    """

    node: Node
    position: int
    operator: OperatorVersion | None


class InferenceScope(Facts, Protocol):
    """Members of `Scope` that inference uses."""

    container: ContainerProto
    owner: NodeProto | None
    registry: Registry
    emitted: list[tuple[Node, int]]

    @property
    def parent(self) -> InferenceScope | None:
        """Scope of the enclosing graph; `None` for the main graph and for functions."""
        ...

    @cached_property
    def declared_positions(self) -> Mapping[str, int]:
        """Positions of the values with declared types, by name."""
        ...

    @property
    def has_plain_nodes(self) -> bool:
        """Whether nodes depend on their NodeProto alone, not on calls of a function."""
        ...

    def child(self, graph: GraphProto) -> InferenceScope:
        """Return the scope of a subgraph of a node."""
        ...

    def is_local(self, name: str) -> bool:
        """Return whether the value is defined in this graph, not in an enclosing one."""
        ...

    def is_overridable(self, name: str) -> bool:
        """Return whether a caller may provide the value."""
        ...

    def is_input_or_initializer(self, name: str) -> bool:
        """Return whether the value is an input or initializer."""
        ...

    def initializer(self, name: str) -> TensorProto | None:
        """Return the TensorProto of an initializer of this graph, or `None`."""
        ...

    def sparse_initializer(self, name: str) -> SparseTensorProto | None:
        """Return the SparseTensorProto of an initializer of this graph, or `None`."""
        ...

    def producer(self, name: str) -> Producer | None:
        """Return the producer of a value in this scope, or `None`."""
        ...

    def opset_of(self, domain: str) -> int:
        """Return the imported opset of a domain; 0 if it is not imported."""
        ...

    def operator(self, op_type: str, domain: str) -> OperatorVersion | None:
        """Return the operator version under the opset imports, or `None`."""
        ...

    def node_of(self, record: NodeRecord) -> Node:
        """Return the view of a recorded node of this scope."""
        ...

    def proto_of(self, record: NodeRecord) -> NodeProto:
        """Return the NodeProto of a record."""
        ...

    def declared_type(self, name: str) -> str | None:
        """Return the element type of a value without inference over nodes."""
        ...

    def declared_shape(self, name: str) -> Shape | None:
        """Return the shape of a value without inference over nodes."""
        ...

    def declared_rank(self, name: str) -> int | None:
        """Return the rank of a value without inference over nodes."""
        ...

    def infer_call(
        self, record: NodeRecord, fact: Callable[[InferenceScope, str], FactT | None]
    ) -> Sequence[FactT | None] | None:
        """Return one fact per output of a function call; `None` if the node is not a call."""
        ...
