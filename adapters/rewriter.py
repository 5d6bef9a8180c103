"""What an adapter is given besides its node: facts about the model, and a way to emit nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.registry.models import OperatorVersion
from opshift.registry.names import canonical_domain

_SCALARS = (int, float, bytes, str)
Concession = Literal["approximate", "assume-nonnegative", "drop-metadata", "drop-training", "drop-devices"]
"""What a caller may allow: results that differ in rounding, indices taken to be no less than zero, and the
loss of metadata, training information and device configurations, for which an IR version has no place."""


class Facts(Protocol):
    """What is known about the values of a model before it is converted."""

    def element_type(self, name: str) -> str | None:
        """The element type of a tensor, such as `float16`; of a sequence or map its type string."""

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The dimensions of a tensor, `None` for each that is not known; `None` if the rank is not known."""

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor, if it is known."""

    def shape_within(self, graph: Any, name: str) -> tuple[int | None, ...] | None:
        """The dimensions of a tensor of a GraphProto that an attribute of a node holds."""

    def constant(self, name: str) -> Tensor | None:
        """The value, if it is the same in every run."""

    def is_used(self, name: str) -> bool:
        """Whether any node reads the value, or the graph returns it."""

    def fresh(self, hint: str) -> str:
        """A name that nothing in the model has."""

    def add_constant(self, tensor: Tensor) -> str:
        """The name of a constant with this value; equal constants share one."""

    def concede(self, kind: Concession, reason: str) -> bool:
        """Whether the caller allows what is not exact; if so, the plan says that it was made use of."""


class Emitted(NamedTuple):
    """A node that an adapter wrote, and the opset of its domain that it is written for."""

    node: Node
    opset: int
    successor: bool
    """Whether it takes the place of the original: its name, doc string and metadata."""


class Rewriter:
    """Collects what one adapter emits for one node.

    `source` and `target` are the two versions of the step. A node is emitted for the opset of the
    step's target unless it says otherwise, and converted further from there.
    """

    __slots__ = ("default_opset", "emitted", "facts", "opset", "source", "target")

    def __init__(
        self,
        facts: Facts,
        source: OperatorVersion,
        target: OperatorVersion | None,
        opset: int,
        default_opset: int,
    ) -> None:
        self.facts = facts
        self.source = source
        self.target = target
        self.opset = opset
        self.default_opset = default_opset
        self.emitted: list[Emitted] = []

    # Facts

    def known_element_type(self, name: str) -> str | None:
        """The element type of a value, if it is known."""
        return self.facts.element_type(name) if name else None

    def element_type(self, name: str) -> str:
        """The element type of a value, such as `float16`.

        Raises:
            CannotConvert: it is not known.
        """
        found = self.known_element_type(name)
        if found is None:
            raise CannotConvert(
                f"the element type of {name!r} is not known",
                remedy=f"state it: add a value_info for {name!r}",
            )
        return found

    def known_rank(self, name: str) -> int | None:
        """The number of dimensions of a value, if it is known."""
        return self.facts.rank(name) if name else None

    def rank(self, name: str) -> int:
        """The number of dimensions of a value.

        Raises:
            CannotConvert: it is not known.
        """
        found = self.known_rank(name)
        if found is None:
            raise CannotConvert(
                f"the rank of {name!r} is not known", remedy=f"state it: add a value_info for {name!r}"
            )
        return found

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The dimensions of a value, `None` for those not known; `None` if not even the rank is."""
        return self.facts.shape(name) if name else None

    def constant_value(self, name: str) -> Tensor | None:
        """The value of an input that is the same in every run."""
        return self.facts.constant(name) if name else None

    def require_constant(self, name: str, meaning: str) -> Tensor:
        """The value of a constant input.

        Raises:
            CannotConvert: it is computed, or a caller may override it.
        """
        found = self.constant_value(name)
        if found is None:
            raise CannotConvert(
                f"{meaning} ({name!r}) is not a constant",
                remedy="make it an initializer that is no graph input",
            )
        return found

    def is_used(self, name: str) -> bool:
        """Whether anything reads a value, or the graph returns it."""
        return bool(name) and self.facts.is_used(name)

    def concede(self, kind: Concession, reason: str) -> None:
        """Go on only if the caller allows what is not exact.

        Raises:
            CannotConvert: it is not allowed.
        """
        if not self.facts.concede(kind, reason):
            raise CannotConvert(reason, remedy=f"allow {kind!r}, if the model can bear it")

    # Emission

    def fresh(self, hint: str) -> str:
        """A name for a new value."""
        return self.facts.fresh(hint)

    def constant(self, values: Any, element_type: str, rank: int | None = None) -> str:
        """The name of a constant.

        Args:
            values: a number, or a flat sequence of numbers.
            element_type: such as `int64`.
            rank: 0 for a scalar, 1 for a list; by default a scalar for a number and a list for a sequence.
        """
        is_list = not isinstance(values, _SCALARS)
        listed = tuple(values) if is_list else (values,)
        scalar = rank == 0 or (rank is None and not is_list)
        return self.facts.add_constant(Tensor(element_type, () if scalar else (len(listed),), listed))

    def tensor(self, tensor: Tensor) -> str:
        """The name of a constant of any shape."""
        return self.facts.add_constant(tensor)

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
        """Emit a node and give the name of its first output.

        Args:
            op_type: its operator.
            inputs: names of values, `""` for one left out.
            outputs: names, or how many fresh ones to make.
            domain: by default that of the step.
            opset: the opset of `domain` that the node is written for; by default the step's target.
            attributes: values by name; `None` leaves the attribute out.
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
        """As `emit`, for all outputs."""
        if isinstance(outputs, int):
            outputs = [self.fresh(op_type.lower()) for _ in range(outputs)]
        home = self.source.domain if domain is None else canonical_domain(domain)
        if opset is None:
            opset = self.opset if home == self.source.domain else self.default_opset
        stated = {name: value for name, value in attributes.items() if value is not None}
        wire = "" if home == "ai.onnx" else home
        self.emitted.append(Emitted(Node(op_type, inputs, outputs, stated, wire), opset, successor=False))
        return tuple(outputs)

    def become(
        self,
        node: Node,
        *,
        op_type: str | None = None,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        attributes: Mapping[str, Any] | None = None,
        opset: int | None = None,
    ) -> None:
        """Emit the node that takes the original's place; what is not given stays as it is."""
        if op_type is None and inputs is None and outputs is None and attributes is None:
            self.emitted.append(Emitted(node, opset or self.opset, True))
            return
        changed = Node(
            op_type or node.op_type,
            node.inputs if inputs is None else inputs,
            node.outputs if outputs is None else outputs,
            node.attributes if attributes is None else attributes,
            node.domain,
        )
        self.emitted.append(Emitted(changed, opset or self.opset, True))


StepFunction = Callable[[Node, Rewriter], None]
