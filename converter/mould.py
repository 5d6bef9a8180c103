"""A node that takes the place of another, as bytes, to write all that differ from it in names alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from opshift.adapters.node import Node
from opshift.converter.rewrite import Written
from opshift.converter.write import fill_node, update_node

Names = tuple[str, ...]
Pick = Callable[[Names], Names]


class Mould(NamedTuple):
    """A NodeProto without its names.

    Attributes:
        written: the node; what its attributes say is in no model.
        cleared: the fields that go from the NodeProto that it is written over.
        filling: what comes instead, serialized.
        inputs, outputs: pick its names out of all that there are.
        writes_inputs, writes_outputs: whether those are to be written; otherwise they stay.
    """

    written: Written
    cleared: tuple[str, ...]
    filling: bytes
    inputs: Pick
    outputs: Pick
    writes_inputs: bool
    writes_outputs: bool

    @classmethod
    def of(cls, written: Written, original: Node, is_main: bool, places: Mapping[str, int]) -> Mould:
        """The mould of what takes the place of a node of the model, written over it or beside it.

        Args:
            written: the node.
            original: the node whose place is taken.
            is_main: whether it is written over that one.
            places: by name, its position among all names.
        """
        copy = original.copied()
        proto = copy if is_main else type(copy)()
        if is_main:
            update_node(proto, written, original)
        else:
            fill_node(proto, written, copy)
        bare = type(copy)(op_type=proto.op_type, domain=proto.domain or None, attribute=proto.attribute)
        attributes = {each.name: each for each in bare.attribute}
        node = Node(proto.op_type, written.node.inputs, written.node.outputs, attributes, proto.domain)
        differs = {
            "domain": node.domain != original.domain,
            "attribute": True,
            "input": node.inputs != original.inputs,
            "output": node.outputs != original.outputs,
        }
        return cls(
            written._replace(node=node),
            tuple(field for field in differs if differs[field]) if is_main else (),
            bare.SerializeToString(),
            _pick(node.inputs, places),
            _pick(node.outputs, places),
            differs["input"] or not is_main,
            differs["output"] or not is_main,
        )

    def named(self, names: Names) -> Written:
        """The node, with names."""
        node = self.written.node
        node = Node(node.op_type, self.inputs(names), self.outputs(names), node.attributes, node.domain)
        return self.written._replace(node=node)

    def fill(self, proto: Any, names: Names) -> None:
        """Write it, with names."""
        for field in self.cleared:
            proto.ClearField(field)
        proto.MergeFromString(self.filling)
        if self.writes_inputs:
            proto.input.extend(self.inputs(names))
        if self.writes_outputs:
            proto.output.extend(self.outputs(names))


def _pick(chosen: Names, places: Mapping[str, int]) -> Pick:
    """Picks out of all names those at the places of these."""
    positions = [places[name] for name in chosen]
    if len(positions) > 1:
        return itemgetter(*positions)
    if not positions:
        return lambda names: ()
    (only,) = positions
    return lambda names: (names[only],)
