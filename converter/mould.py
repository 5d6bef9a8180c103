"""Write the nodes that are like one that is written already: from its bytes, with names of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from opshift.adapters.node import Node
from opshift.converter.changes import NodeChange
from opshift.converter.pattern import Form, Names, Pattern, Pick, Renamed
from opshift.converter.write import fill_node, update_node


class Mould(NamedTuple):
    """A NodeProto that is written, but for its names.

    Attributes:
        cleared: the fields that go from the node whose place it takes.
        filling: what comes instead, serialized.
        inputs, outputs: give its names out of all that there are; `None` where they stay.
    """

    cleared: tuple[str, ...]
    filling: bytes
    inputs: Pick | None
    outputs: Pick | None

    @classmethod
    def of(cls, proto: Any, form: Form, original: Node) -> Mould:
        """The mould of a NodeProto that is written in the form of a pattern for `original`."""
        bare = type(proto)(op_type=proto.op_type, attribute=proto.attribute)
        if proto.domain:
            bare.domain = proto.domain
        filling, node = bare.SerializeToString(), form.written.node
        if not form.written.successor:
            return cls((), filling, form.inputs, form.outputs)
        changed = {
            "attribute": True,
            "domain": node.domain != original.domain,
            "input": node.inputs != original.inputs,
            "output": node.outputs != original.outputs,
        }
        cleared = tuple(field for field, is_changed in changed.items() if is_changed)
        inputs = form.inputs if changed["input"] else None
        return cls(cleared, filling, inputs, form.outputs if changed["output"] else None)

    def fill(self, proto: Any, names: Names) -> None:
        """Write a NodeProto: an empty one, or the one whose place is taken."""
        for field in self.cleared:
            proto.ClearField(field)
        proto.MergeFromString(self.filling)
        if self.inputs:
            proto.input.extend(self.inputs(names))
        if self.outputs:
            proto.output.extend(self.outputs(names))


class Moulds:
    """Writes the nodes that change in one graph or function."""

    def __init__(self) -> None:
        self._known: dict[Pattern, Sequence[Mould]] = {}

    def write(self, change: NodeChange, protos: Sequence[Any]) -> None:
        """Write what takes a node's place: over the node where its successor stands, else in empty protos."""
        result = change.result
        if not isinstance(result, Renamed):
            _write(change, protos)
            return
        moulds = self._known.get(result.pattern)
        if moulds is None:
            _write(change, protos)
            rows = zip(protos, result.pattern.forms, strict=True)
            self._known[result.pattern] = [Mould.of(proto, form, result.pattern.node) for proto, form in rows]
            return
        for mould, proto in zip(moulds, protos, strict=True):
            mould.fill(proto, result.names)


def _write(change: NodeChange, protos: Sequence[Any]) -> None:
    original = protos[change.result.main]
    for written, proto in zip(change.result.nodes, protos, strict=True):
        if proto is not original:
            fill_node(proto, written, original)
    update_node(original, change.result.nodes[change.result.main], change.original)
