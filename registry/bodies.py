"""Function bodies, which define an operator by other operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, cast

from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.function_builder import function_builder
from opshift.registry.record import Checked, Record
from opshift.registry.steps import Literals

if TYPE_CHECKING:
    from opshift.model.messages import FunctionProto
    from opshift.model.types import InputFacts, SerializableMessage
    from opshift.registry.models import OperatorVersion
    from opshift.registry.registry import Registry


def node_text(
    op_type: str, inputs: Iterable[str], outputs: Iterable[str], attributes: Mapping[str, object]
) -> str:
    """Return a node as text, such as `Y = Elu <alpha=2.0>(X)`."""
    values = ", ".join(f"{name}={value}" for name, value in attributes.items())
    return f"{', '.join(outputs)} = {op_type}{f' <{values}>' if values else ''}({', '.join(inputs)})"


class FromAttribute(Record):
    """Reference in a function body to an attribute of the calling node, or to its default."""

    attribute: str
    """The name of the attribute."""

    def __str__(self) -> str:
        return f"@{self.attribute}"


class BodyNode(Record):
    """One node of a function body."""

    op_type: str
    """The name of the operator."""
    domain: str = DEFAULT_DOMAIN
    """The domain of the operator."""
    inputs: tuple[str, ...] = ()
    """The names of the inputs; an empty name omits an input."""
    outputs: Annotated[tuple[str, ...], Checked(min_length=1)]
    """The names of the outputs; an empty name omits an output."""
    attributes: dict[str, Literals | FromAttribute] = field(default_factory=dict)
    """Attributes by name: a value, or a reference to an attribute of the calling node."""

    def __str__(self) -> str:
        return node_text(self.op_type, self.inputs, self.outputs, self.attributes)


class Body(Record):
    """A function body: nodes that compute the operator's outputs from its inputs."""

    opset_imports: Annotated[dict[str, Annotated[int, Checked(ge=1)]], Checked(min_length=1)]
    """For each domain, the opset version that the nodes are written for."""
    nodes: Annotated[tuple[BodyNode, ...], Checked(min_length=1)]
    """The nodes in topological order."""

    def __str__(self) -> str:
        imports = ", ".join(f"{domain} {opset}" for domain, opset in self.opset_imports.items())
        return "\n".join([imports, *map(str, self.nodes)])


class FunctionDefinition(Record):
    """Base class of `OperatorVersion`, with the fields and methods for its function body."""

    body: Body | None = field(default_factory=type(None))
    """The definition in terms of other operators, if it is the same for all nodes."""
    has_context_dependent_function: Annotated[bool, Checked(strict=True)] = False
    """Whether the body depends on the node, and adapters build it."""

    @property
    def has_function(self) -> bool:
        """Whether the version has a function body, which is either `body` or depends on the node."""
        return self.body is not None or self.has_context_dependent_function

    def function_body(
        self,
        node: SerializableMessage | None = None,
        input_types: Sequence[InputFacts | None] = (),
        *,
        opset: int | None = None,
        registry: Registry | None = None,
    ) -> FunctionProto:
        """Return the function body as a FunctionProto with the input and output names of this definition.

        Args:
            node: the NodeProto to build a body for; required with `opset` or if the body depends on it.
            input_types: type, shape or value of each input of the node, as for `convert_node`, or `None`.
            opset: opset of the default domain for which the nodes are written. An operator of the default
                domain must have this version at that opset. By default, the opset of `body`; without `body`,
                `since_version` in the default domain, and the newest opset in other domains.
            registry: operator definitions; by default the project's own.

        Raises:
            UsageError: the operator is not a function, or an argument is missing or invalid.
            CannotConvert: the node is invalid, or its body depends on an unknown fact about its inputs.
        """
        return function_builder()(cast("OperatorVersion", self), node, input_types, opset, registry)
