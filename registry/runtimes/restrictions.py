"""Restrictions: descriptions of nodes, and patterns of nodes, that a kernel refuses or computes wrongly.

Also the types of fields in the files of runtimes.
"""

from __future__ import annotations

from dataclasses import field, fields
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated

from opshift.model.element_types import BY_NAME, INTEGER_FIELDS, element_bits
from opshift.model.errors import InvalidModel
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.shared_data import share_results
from opshift.opsets import OPSETS
from opshift.registry.attribute_values import Scalar
from opshift.registry.errors import InvalidDefinition
from opshift.registry.record import Checked, Record

if TYPE_CHECKING:
    from opshift.registry.type_sets import TypeSets


@share_results
def _type_sets() -> TypeSets:
    from opshift.registry.type_sets import TypeSets  # imported here: compiled runtimes need no type sets

    return TypeSets.of_folders((OPSETS,))


def _expand(entries: object) -> object:
    """Expand the entries of a list to types; return other data unchanged, so that pydantic refuses them."""
    if not isinstance(entries, list) or not all(isinstance(each, str) for each in entries):
        return entries
    try:
        return _type_sets().expand(f"tensor({each})" if each in BY_NAME else each for each in entries)
    except InvalidDefinition as error:
        raise ValueError(f"{error.findings[0].reason}; {error.remedy}") from error


def _checked_element_type(name: object) -> object:
    if name not in BY_NAME:
        raise ValueError(f"{name!r} is not an element type")
    return name


Types = Annotated[tuple[str, ...], Checked(_expand, min_length=1)]
"""Types such as `tensor(float)`; a file may list element types, types and sets of `types.yaml`."""


def _checked_integer_type(name: object) -> object:
    kind = BY_NAME[str(_checked_element_type(name))]
    if kind.field not in INTEGER_FIELDS or element_bits(kind) % 8:
        raise ValueError(f"elements of {name!r} are not stored as integers of whole bytes")
    return name


ElementName = Annotated[str, Checked(_checked_element_type)]
"""Name of an element type, such as `float16`."""

IntegerStoredName = Annotated[str, Checked(_checked_integer_type)]
"""Name of an element type whose elements are stored as integers of whole bytes, such as `bfloat16`."""


def _parse_axis(name: object) -> object:
    return str(int(name)) if isinstance(name, str) else name


Axis = Annotated[str, Checked(_parse_axis)]
"""Number of an axis, as a string: keys in YAML files are strings."""

Version = Annotated[int, Checked(strict=True, ge=1)]


def _checked_opsets(opsets: object) -> object:
    if isinstance(opsets, dict) and DEFAULT_DOMAIN not in opsets:
        raise ValueError(f"{DEFAULT_DOMAIN} is missing; add its newest supported opset")
    return opsets


Opsets = Annotated[dict[str, Version], Checked(_checked_opsets)]
"""Newest opset of each domain. The default domain is required: conversions choose one of its opsets."""

Sizes = Annotated[tuple[Annotated[int, Checked(strict=True)], ...], Checked(min_length=1)]
"""Nonempty list of sizes or ranks."""


AttributeValue = Scalar | tuple[Scalar, ...] | None


@cache
def pattern_nodes(text: str) -> tuple[Node, ...]:
    """Return the nodes of a pattern, which is written in ONNX's text syntax.

    Raises:
        InvalidModel: the text does not consist of nodes.
    """
    # imported here: few uses of runtimes read a pattern, and only patterns need protobuf
    from opshift.model.messages import GraphProto
    from opshift.model.onnx_text.read import read_text

    graph = read_text(text)
    if not isinstance(graph, GraphProto):
        raise InvalidModel("the text is a model", remedy="write only its nodes")
    return tuple(map(Node.from_proto, graph.node))


@cache
def pattern_operators(text: str) -> frozenset[str]:
    """Return the operator types of the nodes of a pattern, which is written in ONNX's text syntax."""
    return frozenset(each.op_type for each in pattern_nodes(text))


def _checked_nodes(text: object) -> object:
    if isinstance(text, str):
        try:
            pattern_nodes(text)
        except InvalidModel as error:
            raise ValueError(f"{error.reason}; {error.remedy}") from error
    return text


def _checked_requirement(text: object) -> object:
    # imported here: few restrictions have expressions
    from opshift.registry.requirements import InvalidRequirement, parse_requirement

    if isinstance(text, str):
        try:
            parse_requirement(text)
        except InvalidRequirement as error:
            raise ValueError(f"{text!r} {error}") from error
    return text


Values = Annotated[tuple[Scalar | None, ...], Checked(min_length=1)]
Operators = Annotated[tuple[str, ...], Checked(min_length=1)]
Expression = Annotated[str, Checked(_checked_requirement)]


class NodePattern(Record):
    """Nodes that an optimizer replaces together.

    A name matches any value; equal names match the same value. Nodes may have more inputs than the pattern
    lists; for a variadic operator, these match the last listed input.
    """

    nodes: Annotated[str, Checked(_checked_nodes)]
    """The nodes in ONNX's syntax."""
    attributes: dict[str, tuple[AttributeValue, ...]] = field(default_factory=dict)
    """Allowed values of attributes, for each node with an operator that has the attribute; `null`: absent."""
    node: str = ""
    """Output of the restricted node, which the last node reads; by default, the last node is restricted."""
    ranks: dict[str, Sizes] = field(default_factory=dict)
    """Ranks of inputs of the nodes."""
    types: dict[str, Types] = field(default_factory=dict)
    """Types of values of the pattern."""
    shared: tuple[str, ...] = ()
    """Values inside the pattern that nodes outside it may also read."""
    outputs: tuple[str, ...] = ()
    """Values inside the pattern that may be outputs of the graph, because the optimizer keeps them."""
    kept: tuple[str, ...] = ()
    """Values of the pattern that are outputs of the graph, or that nodes outside it also read."""
    scalars: tuple[str, ...] = ()
    """Inputs of the nodes that must be constants with one element."""
    vectors: tuple[str, ...] = ()
    """Inputs of the nodes that must be constants, with a size that is not known to be 1."""
    computed: tuple[str, ...] = ()
    """Inputs of the nodes that other nodes compute from values that differ between runs."""
    given: tuple[str, ...] = ()
    """Inputs of the nodes that no node of the graph computes: graph inputs, initializers that callers can
    override, and values of enclosing graphs."""
    sources: dict[str, Operators] = field(default_factory=dict)
    """Operators of nodes that may compute inputs of the nodes; inputs that no node computes match, too."""
    excluded_sources: dict[str, Operators] = field(default_factory=dict)
    """Operators of nodes that must not compute inputs of the nodes."""
    reused: dict[str, Operators] = field(default_factory=dict)
    """Operators by input: the input is a constant with one element, and another node with one of these
    operators reads an equal constant."""
    fused: tuple[Annotated[str, Checked(_checked_nodes)], ...] = ()
    """Nodes that the optimizer replaces before it searches for the pattern, in ONNX's syntax. The conditions
    of the pattern on inputs with the same names and on attributes apply. `reused` ignores these nodes."""
    holds: tuple[Expression, ...] = ()
    """Expressions about values of the pattern, in the syntax of the requirements of definitions, that are
    true."""
    skips: tuple[str, ...] = ()
    """Operators of the default domain that may be between the nodes of the pattern."""


class Condition(Record):
    """Condition on a node: all of its parts must hold."""

    attributes: dict[str, Values] = field(default_factory=dict)
    """Allowed values of attributes, or of all elements of lists and tensors; `null` for an absent one."""
    stated: tuple[str, ...] = ()
    """Attributes that the node sets, even to their default values."""
    present: tuple[str, ...] = ()
    """Inputs and outputs that the node has; a name of both is that of the output."""
    absent: tuple[str, ...] = ()
    """Inputs and outputs that the node omits."""
    constant: tuple[str, ...] = ()
    """Inputs that have the same value in every run."""
    fixed: tuple[str, ...] = ()
    """Inputs that have the same value in every run, and that do not depend on initializers that callers can
    override."""
    stored: tuple[str, ...] = ()
    """Inputs that are initializers or results of Constant nodes."""
    typed_data: tuple[str, ...] = ()
    """Inputs that are initializers or results of Constant nodes, and that are not stored as raw bytes, but in
    a field for their type, such as `int32_data`."""
    computed: tuple[str, ...] = ()
    """Inputs that the node has, and whose values differ between runs."""
    fed: tuple[str, ...] = ()
    """Inputs that the node has, and that depend on values of graph inputs, not only on sizes."""
    captures: tuple[str, ...] = ()
    """Attributes with subgraphs that read enclosing values other than initializers and Constant results."""
    captures_outputs: tuple[str, ...] = ()
    """For nodes of the main graph: attributes with subgraphs that read outputs of the main graph."""
    untyped: tuple[str, ...] = ()
    """Attributes with subgraphs that do not declare the types of all inputs."""
    unread: dict[str, str] = field(default_factory=dict)
    """Maps an attribute with a subgraph to an attribute with a number n: no output of the subgraph depends
    on its last n inputs."""
    returned: dict[str, str] = field(default_factory=dict)
    """Maps an attribute with a subgraph to an attribute with a number n: an output at the position of one
    of the other inputs may be a copy of one of the last n inputs, perhaps with another shape."""
    ranks: dict[str, Sizes] = field(default_factory=dict)
    """Ranks of inputs and outputs."""
    dimensions: dict[str, dict[Axis, Sizes]] = field(default_factory=dict)
    """Sizes of inputs and outputs by axis; a missing axis has the size 1."""
    equal_sizes: dict[str, Annotated[int, Checked(strict=True)]] = field(default_factory=dict)
    """One axis for each input or output; all these axes have the same size."""
    sized: tuple[str, ...] = ()
    """Inputs and outputs whose sizes are all known before a run."""
    sized_axes: dict[str, Sizes] = field(default_factory=dict)
    """Axes of inputs and outputs whose sizes are all known before a run; false if the rank is unknown."""
    ranked: tuple[str, ...] = ()
    """Inputs and outputs whose ranks are known before a run."""
    empty: tuple[str, ...] = ()
    """Inputs and outputs that have no elements in any run: a size is 0."""
    single: tuple[str, ...] = ()
    """Variadic inputs and outputs that have exactly one value."""
    odd_sizes: dict[str, Annotated[int, Checked(strict=True)]] = field(default_factory=dict)
    """Axes of inputs and outputs whose sizes are odd."""
    single_after: dict[str, str] = field(default_factory=dict)
    """For each input, the attribute with an axis: the sizes after the axis are known, and their product is at
    most 1."""
    single_from: dict[str, str] = field(default_factory=dict)
    """Like `single_after`, but the product includes the size of the axis itself."""
    values: dict[str, Values] = field(default_factory=dict)
    """Allowed elements of constant inputs."""
    holds: tuple[Expression, ...] = ()
    """Expressions about the node, in the syntax of the requirements of definitions, that are true."""
    differing: tuple[str, ...] = ()
    """Constant inputs whose elements are not all equal."""
    patterns: tuple[NodePattern, ...] = ()
    """Patterns of nodes that an optimizer replaces; the node is part of one of them."""
    opsets: tuple[Version, Version] | None = None
    """The first and the last opset of the default domain at which the condition holds."""
    types: dict[str, Types] = field(default_factory=dict)
    """Types of type variables and parameters."""
    computed_by: dict[str, Operators] = field(default_factory=dict)
    """Inputs that one of these operators computes, or that nodes compute from its result without a change of
    type."""
    depends_on: dict[str, Operators] = field(default_factory=dict)
    """Like `computed_by`, but the nodes may change the type, and read the result as any input."""
    some_types: dict[str, Types] = field(default_factory=dict)
    """Types of parameters, which may be variadic: at least one value of a parameter has one of the types."""
    diverging: tuple[str, ...] = ()
    """Attributes with subgraphs: outputs at the same position have an unknown rank, or different ranks; the
    ranks 0 and 1 count as equal."""
    negative: tuple[str, ...] = ()
    """Constant inputs with a negative element."""
    beyond_int32: tuple[str, ...] = ()
    """Inputs and outputs of integers that may be outside the range of int32. Values that depend only on sizes
    count as inside it."""
    beside: tuple[str, ...] = ()
    """Operators of any domain: the graph of the node also contains a node of one of these operators."""

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Names of the given parts, which must all hold."""
        return tuple(each.name for each in fields(self) if getattr(self, each.name))


class Restriction(Record):
    """Nodes that a kernel refuses or computes wrongly.

    A restriction concerns nodes that fulfil `when`, except nodes that fulfil `unless`. Without conditions,
    only `reason` describes the nodes.
    """

    reason: Annotated[str, Checked(min_length=1)]
    """Requirement of the kernel, for users."""
    sometimes: bool = False
    """Whether the kernel refuses only some of these nodes, or computes only some values wrongly."""
    versions: tuple[Version, Version] | None = None
    """The first and the last version of the operator with the restriction; all by default."""
    when: Condition | None = None
    """The nodes that the kernel refuses or computes wrongly; all by default."""
    unless: Condition | None = None
    """Exceptions from `when`."""

    def __hash__(self) -> int:
        """Return the hash of the reason and the patterns: dictionaries of the conditions are not hashable."""
        patterns = self.when.patterns if self.when is not None else ()
        return hash((self.reason, *[each.nodes for each in patterns]))

    def concerns(self, version: int) -> bool:
        """Return whether the restriction concerns the operator version with this `since_version`."""
        return self.versions is None or self.versions[0] <= version <= self.versions[1]
