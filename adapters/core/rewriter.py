"""`Rewriter`, with which an adapter queries facts about the model and emits the nodes that replace a node.

Limits bound the nodes and constants that replace one node, because a model can declare tensors of any size.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from operator import length_hint
from typing import Any, ParamSpec, Protocol

from opshift.adapters.core.adapter_table import StepKey, error_bound
from opshift.inference.facts import Facts, ListedSize
from opshift.model.attributes import read_attribute
from opshift.model.element_types import BY_NAME
from opshift.model.errors import (
    NOT_ALLOWED,
    UNKNOWN_CONSTANT,
    CannotConvert,
    UnknownElementType,
    UnknownShape,
)
from opshift.model.node import AttributeComparison, Emitted, Move, Node, Tensor, TracedNode
from opshift.model.operator_ids import canonical_domain
from opshift.model.types import MAX_RANK
from opshift.registry.models import OperatorVersion
from opshift.registry.steps import Allow

MAX_NODES = 2_000
"""Maximum number of nodes that replace one node."""

MAX_OUTPUTS = 1 << 14
"""Maximum number of outputs of an emitted node."""

MAX_ELEMENTS = 1 << 20
"""Maximum number of elements of a constant: 8 MiB of int64."""

MAX_CONSTANT_BYTES = 16 << 20
"""Maximum total number of bytes of the constants that are added for one node."""

LARGE_FACTOR = 8
"""Factor by which all limits grow if the caller allows `large`, so that memory and time remain bounded."""


def element_count_of(sizes: Iterable[int]) -> int:
    """Return the number of elements of a shape; a size below 1 counts as 1."""
    return prod(max(size, 1) for size in sizes)


class _Allowing(Protocol):
    """Object whose method `allow` returns whether the caller of the conversion allows a deviation."""

    def allow(self, kind: Allow, reason: str) -> bool: ...


def require_at_most(count: int, limit: int, added: str, allowing: _Allowing) -> None:
    """Refuse a count above a limit, or above `LARGE_FACTOR` times the limit if the caller allows `large`.

    Args:
        count: the number of nodes, elements or outputs that the conversion of one node would add.
        limit: the maximum.
        added: the plural of the counted noun, such as "nodes", for the message.
        allowing: the object to ask whether the caller allows `large`.

    Raises:
        CannotConvert: the count exceeds the limit, or the raised limit if the caller allows `large`.
    """
    if count <= limit:
        return
    reason = f"the conversion of this node would add {count:,} {added}, more than {limit:,}"
    if count > limit * LARGE_FACTOR:
        remedy = "reduce the sizes in the model, or convert to a newer opset"
        raise CannotConvert(reason, "limit.exceeded", remedy=remedy)
    if not allowing.allow("large", reason):
        remedy = "pass --allow large (allow= in Python), reduce the sizes, or convert to a newer opset"
        raise CannotConvert(reason, "limit.exceeded", remedy=remedy)


Parameters = ParamSpec("Parameters")


def renamed(method: Callable[Parameters, None], old: str) -> Callable[Parameters, None]:
    """Return the deprecated alias `old` of a method."""

    def alias(*arguments: Parameters.args, **options: Parameters.kwargs) -> None:
        message = f"Rewriter.{old} is deprecated and will be removed: call {method.__name__}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        method(*arguments, **options)

    return alias


class Output(Protocol):
    """Interface through which adapters get names and constants, and ask for permission to deviate."""

    def fresh(self, hint: str) -> str:
        """Return a name that is not used in the model, derived from `hint`."""
        ...

    def add_constant(self, tensor: Tensor) -> str:
        """Return the name of a constant with this value; equal constants share one name."""
        ...

    def declare_shape(self, name: str, rank: int | None = None) -> None:
        """Request that the converted model declares the shape of an input or output of the node.

        Runtimes that infer fewer shapes than opshift may need this shape, in value_info, to fuse nodes.
        `rank` is the rank, or `None` if unknown.
        """
        ...

    def allow(self, kind: Allow, reason: str) -> bool:
        """Return whether the caller allows `kind`, such as `approximate`; if so, record the reason."""
        ...


Scalar = int | float | bytes | str

# Tuples, because `isinstance` takes several times longer with a union type.
SCALARS = (int, float, bytes, str)
NUMBERS = (int, float)
LISTS = (tuple, list)

Attributes = Mapping[str, Any]
"""Attributes by name: numbers, bytes, sequences of these, tensors, graphs, or AttributeProto messages."""


def _require_size(found: int | None, fact: str, name: str) -> int:
    if found is None:
        raise UnknownShape(f"the {fact} of {name!r} is unknown", name)
    return found


class Rewriter:
    """Provide facts about the model to an adapter, and collect the nodes that it emits to replace one node.

    Attributes:
        facts: facts about the values of the model.
        workspace: provides names and constants, and decides which deviations are allowed.
        source: the operator version that the step converts from.
        target: the operator version that the step converts to; `None` if the operator does not exist there.
        opset: the opset to which the step converts; the default for emitted nodes of the operator's domain.
        default_opset: the opset of domain ai.onnx; the default for emitted nodes of all other domains.
        emit_opset: the opset if a call of `emit` passes none; `None` selects `opset` or `default_opset`.
        emit_domain: the domain if a call of `emit` passes none.
        emitted: the nodes emitted so far, in order; later steps convert nodes that need another opset.
    """

    __slots__ = (
        "default_opset", "emit_domain", "emit_opset", "emitted", "facts", "opset", "source", "target",
        "workspace",
    )  # fmt: skip

    def __init__(
        self,
        facts: Facts,
        workspace: Output,
        source: OperatorVersion,
        target: OperatorVersion | None,
        opset: int,
        default_opset: int,
    ) -> None:
        self.facts = facts
        self.workspace = workspace
        self.source = source
        self.target = target
        self.opset = opset
        self.default_opset = default_opset
        self.emit_opset: int | None = None
        self.emit_domain = source.domain
        self.emitted: list[Emitted] = []

    def for_opset(self, opset: int | None, domain: str | None = None) -> Rewriter:
        """Return a rewriter that appends to the same list of nodes, with other defaults for opset and domain.

        `opset=None` selects `opset` or `default_opset` by domain; `domain=None` keeps `emit_domain`.
        """
        view = Rewriter(self.facts, self.workspace, self.source, self.target, self.opset, self.default_opset)
        view.emit_domain = self.emit_domain if domain is None else canonical_domain(domain)
        view.emit_opset, view.emitted = opset, self.emitted
        return view

    # Facts

    def known_element_type(self, name: str) -> str | None:
        """Return the element type of a value, such as `float16`, or `None` if it is unknown."""
        return self.facts.element_type(name) if name else None

    def element_type(self, name: str) -> str:
        """Return the element type of a value, such as `float16`.

        Raises:
            UnknownElementType: the element type is unknown.
        """
        found = self.known_element_type(name)
        if found is None:
            raise UnknownElementType(name)
        return found

    def known_rank(self, name: str) -> int | None:
        """Return the rank of a value, or `None` if it is unknown."""
        return self.facts.rank(name) if name else None

    def rank(self, name: str) -> int:
        """Return the rank of a value.

        Raises:
            UnknownShape: the rank is unknown.
        """
        return _require_size(self.known_rank(name), "rank", name)

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """Return the shape, with `None` for unknown dimensions, or `None` if the rank is unknown."""
        return self.facts.shape(name) if name else None

    def known_shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a value if all dimensions are known, else `None`."""
        shape = self.shape(name)
        known = tuple(dim for dim in shape or () if dim is not None)
        return known if shape is not None and len(known) == len(shape) else None

    def comparable_shapes(self, names: Sequence[str]) -> tuple[tuple[int | None, ...] | None, ...]:
        """Return the shapes of values, with negative numbers for symbolic dimensions.

        Equal negative numbers are equal sizes in every run; `None` is any other unknown dimension, or a shape
        of unknown rank.
        """
        return self.facts.comparable_shapes(names)

    def listed_sizes(self, data: str, sizes: str) -> tuple[ListedSize, ...] | None:
        """Return the elements of the 1-D tensor `sizes`; `None` if all are unknown.

        An element is a number, the axes of `data` that have this size in every run, or `None` if unknown.
        """
        return self.facts.listed_sizes((data, sizes))

    def known_dimension(self, name: str, axis: int) -> int | None:
        """Return one dimension of a value, or `None` if it is unknown or the value has no such dimension."""
        shape = self.shape(name)
        return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None

    def dimension(self, name: str, axis: int) -> int:
        """Return one dimension of a value.

        Raises:
            UnknownShape: the dimension is unknown, or the value has no such dimension.
        """
        return _require_size(self.known_dimension(name, axis), f"size of dimension {axis}", name)

    def is_nonnegative(self, name: str) -> bool:
        """Return whether an integer tensor is known to have no negative element in any run."""
        return self.facts.is_nonnegative(name)

    def nonzero_elements(self, name: str) -> tuple[bool, ...] | None:
        """Return for each element of a 1-D integer tensor whether it is known to differ from 0 in every run.

        Return `None` if the length is unknown.
        """
        return self.facts.nonzero_elements(name)

    def uniform_element(self, name: str) -> Tensor | None:
        """Return the number that all elements of a tensor equal in every run, as a scalar, else `None`."""
        return self.facts.uniform_element(name) if name else None

    def constant_value(self, name: str) -> Tensor | None:
        """Return the value as a tensor if it is known and the same in every run, else `None`."""
        return self.facts.constant(name) if name else None

    def require_constant(self, name: str, meaning: str) -> Tensor:
        """Return the value of a constant input; `meaning` describes the input in the error message.

        Raises:
            CannotConvert: the value is computed, or is a graph input that a caller may override.
        """
        found = self.constant_value(name)
        if found is None:
            reason = f"{meaning} ({name!r}) is not a constant"
            remedy = "make the value an initializer that is not a graph input"
            raise CannotConvert(reason, UNKNOWN_CONSTANT, remedy=remedy)
        return found

    def is_used(self, name: str) -> bool:
        """Return whether a node reads the value or the graph returns it."""
        return bool(name) and self.facts.is_used(name)

    def allow(self, kind: Allow, reason: str) -> None:
        """Require that the caller allows `kind`, such as `approximate`, and record reason and error bound.

        Raises:
            CannotConvert: the caller does not allow `kind`.
        """
        target = self.target.since_version if self.target else self.opset
        step = StepKey(self.source.domain, self.source.name, self.source.since_version, target)
        if kind == "approximate" and error_bound(step):
            reason += f"; the error is {error_bound(step)}"
        if not self.workspace.allow(kind, reason):
            remedy = f"pass --allow {kind} (allow= in Python) if the model tolerates it"
            raise CannotConvert(reason, NOT_ALLOWED, subject=kind, remedy=remedy)

    def has_default(self, node: Node, name: str, default: object) -> bool:
        """Return whether a node omits an attribute, or sets it to `default`.

        Unlike a read, this comparison lets nodes with other attribute values share the cached rewrite if the
        comparison has the same result.
        """
        value, origin = _unread_value(node, name, default)
        is_same = is_same_value(value, default)
        if origin and isinstance(node, TracedNode):
            node.trace.comparisons.append(AttributeComparison(origin, default, is_same))
        return is_same

    # Emission

    def fresh(self, hint: str) -> str:
        """Return an unused name for a new value, derived from `hint`."""
        return self.workspace.fresh(hint)

    def constant(self, values: Scalar | Iterable[Scalar], element_type: str, rank: int | None = None) -> str:
        """Return the name of a constant, by default a scalar for one value and a 1-D tensor for a sequence.

        With `rank` 1, one value has the shape (1,); with `rank` 0, a sequence of one element has shape ().
        """
        self.require_elements(length_hint(values))
        return self.workspace.add_constant(constant_tensor(values, element_type, rank))

    def constant_of_attribute(
        self, node: Node, name: str, default: Any, element_type: str, rank: int | None = None
    ) -> str:
        """Return the name of a constant (see `constant`) with the value of an attribute, or else `default`.

        Nodes with other attribute values share the cached rewrite, unless the step also reads the attribute.
        """
        value, origin = _unread_value(node, name, default)
        constant = self.constant(value, element_type, rank)
        if origin and isinstance(node, TracedNode):
            node.trace.moves.append(Move(origin, constant, rank))
        return constant

    def int64(self, values: int | Iterable[int]) -> str:
        """Return the name of a constant int64 scalar or 1-D tensor, such as a size, an axis or a shape."""
        return self.constant(values, "int64")

    def tensor(self, tensor: Tensor) -> str:
        """Return the name of a constant of any shape."""
        return self.workspace.add_constant(tensor)

    def require_elements(self, *sizes: int) -> int:
        """Return the number of elements of a constant of shape `sizes`; refuse too large constants.

        For the limit, a size below 1 counts as 1, because callers may build one list for each size.
        """
        require_at_most(element_count_of(sizes), MAX_ELEMENTS, "elements of a constant", self.workspace)
        return math.prod(sizes)

    def require_rank(self, rank: int) -> int:
        """Return `rank`, which a model declares by the length of a list; refuse a rank above `MAX_RANK`."""
        if rank > MAX_RANK:
            reason = f"the shapes declare a tensor of {rank:,} dimensions, more than {MAX_RANK}"
            raise CannotConvert(reason, "limit.exceeded")
        return rank

    def emit(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: int | Sequence[str] = 1,
        *,
        domain: str | None = None,
        opset: int | None = None,
        **attributes: Any,
    ) -> str:
        """Emit a node and return the name of its first output.

        Args:
            op_type: the operator.
            inputs: the names of the inputs, `""` for an omitted input; omitted inputs at the end are dropped.
            outputs: the names of the outputs, or the number of outputs, which then get fresh names.
            domain: the operator's domain; by default `emit_domain`.
            opset: the opset that the node is written for; by default `emit_opset`, see the class.
            attributes: values by name; an attribute with the value `None` is omitted.
        """
        return self.emit_all(op_type, inputs, outputs, domain=domain, opset=opset, **attributes)[0]

    def emit_all(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: int | Sequence[str],
        *,
        domain: str | None = None,
        opset: int | None = None,
        **attributes: Any,
    ) -> tuple[str, ...]:
        """Emit a node like `emit`, and return the names of all outputs."""
        if isinstance(outputs, int):
            require_at_most(outputs, MAX_OUTPUTS, "outputs", self.workspace)
            outputs = [self.fresh(op_type.lower()) for _ in range(outputs)]
        domain_id = self.emit_domain if domain is None else canonical_domain(domain)
        opset = opset or self.emit_opset
        if opset is None:
            opset = self.opset if domain_id == self.source.domain else self.default_opset
        # Refuse only the raised limit here: the caller of the step counts all nodes of a rewrite.
        if len(self.emitted) >= MAX_NODES * LARGE_FACTOR:
            require_at_most(len(self.emitted) + 1, MAX_NODES, "nodes", self.workspace)
        # Drop trailing empty input names, which some runtimes refuse, and no operator needs.
        count = len(inputs)
        while count and not inputs[count - 1]:
            count -= 1
        present = {name: value for name, value in attributes.items() if value is not None}
        proto_domain = "" if domain_id == "ai.onnx" else domain_id
        self.emitted.append(
            Emitted(
                Node(op_type, inputs[:count], outputs, present, proto_domain), opset, is_replacement=False
            )
        )
        return tuple(outputs)

    def cast(
        self, value: str, element_type: str, outputs: int | Sequence[str] = 1, *, opset: int | None = None
    ) -> str:
        """Emit a Cast to an element type, such as `int64`, and return the name of its output."""
        return self.emit("Cast", [value], outputs, domain="", opset=opset, to=BY_NAME[element_type].number)

    def replace(
        self,
        node: Node,
        *,
        op_type: str | None = None,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        attributes: Attributes | None = None,
        opset: int | None = None,
    ) -> None:
        """Emit the replacement of the original node, with the name, doc string and metadata of the original.

        Arguments that are `None` keep the field of `node`; `attributes` replaces all attributes. The
        replacement is written for `opset`, by default the opset to which the step converts.
        """
        given = {"op_type": op_type, "inputs": inputs, "outputs": outputs, "attributes": attributes}
        changes = {name: value for name, value in given.items() if value is not None}
        # Emit an unchanged node itself: its NodeProto is then copied instead of written anew.
        replacement = node.with_(**changes) if changes else node
        self.emitted.append(Emitted(replacement, opset or self.opset, True))

    become = renamed(replace, "become")
    concede = renamed(allow, "concede")


def _unread_value(node: Node, name: str, default: Any) -> tuple[Any, str]:
    """Return an attribute value without recording a read, and the attribute's name in the model's node.

    The name is `""` if an adapter set the attribute, or if the value is `default`.
    """
    found = node.unread_attribute(name)
    if hasattr(found, "ref_attr_name"):
        return read_attribute(found), found.name
    return node.attribute(name, default), ""


def is_same_value(value: object, declared: object) -> bool:
    """Return whether an attribute value equals a declared value; bytes equal the same text from YAML."""
    if isinstance(value, bytes):
        return value == str(declared).encode()
    if isinstance(value, LISTS) and isinstance(declared, LISTS):
        return len(value) == len(declared) and all(map(is_same_value, value, declared))
    if isinstance(value, NUMBERS) and isinstance(declared, NUMBERS) and value == declared == 0:
        # Zeros of different sign differ, because operators such as Pad copy the zero to the result.
        return math.copysign(1, value) == math.copysign(1, declared)
    return bool(value == declared)


def constant_tensor(values: Scalar | Iterable[Scalar], element_type: str, rank: int | None) -> Tensor:
    """Return a constant scalar or 1-D tensor, see `Rewriter.constant`."""
    if isinstance(values, SCALARS):
        return Tensor(element_type, (1,) if rank else (), (values,))
    elements = tuple(values)
    return Tensor(element_type, () if rank == 0 else (len(elements),), elements)


StepFunction = Callable[[Node, Rewriter], None]
"""A function that emits the replacement of a node, or raises `CannotConvert` to refuse the node."""


def rename_output(value: str, node: Node, out: Rewriter) -> None:
    """Rename `value` to the first output of the original node.

    If `value` is the only output of the last emitted node, rename this output; otherwise emit an Identity.
    """
    last = out.emitted[-1] if out.emitted else None
    if last is None or last.node.outputs != (value,):
        out.emit("Identity", [value], node.outputs[:1], opset=1)
        return
    # Renaming saves an Identity, and is safe because no emitted node reads the output of the last node.
    out.emitted[-1] = last._replace(node=last.node.with_(outputs=node.outputs[:1]))
