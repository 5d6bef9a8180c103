"""A node that takes the place of another, as bytes, to write all that differ from it in names alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple

from opshift.adapters.node import Node, attribute_bytes
from opshift.converter.rewrite import Written
from opshift.converter.write import fill_node, update_node

Names = tuple[str, ...]
Pick = Callable[[Names], Names]


NOTHING: Final = Node("", (), (), {})


class Mould(NamedTuple):
    """A NodeProto without its names.

    Attributes:
        written: the node; what its attributes say is in no model.
        inputs, outputs: pick its names out of all that there are.
        cleared: the fields that go from the NodeProto that it is written over.
        filling: what comes instead, serialized.
        new_inputs, new_outputs: pick the names that come behind those that stay.
    """

    written: Written
    inputs: Pick | None
    outputs: Pick | None
    cleared: tuple[str, ...]
    filling: bytes
    new_inputs: Pick | None
    new_outputs: Pick | None

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
        old, stated = (original, attribute_bytes(copy)) if is_main else (NOTHING, ())
        proto = copy if is_main else type(copy)()
        if is_main:
            update_node(proto, written, original)
        else:
            fill_node(proto, written, copy)
        bare = type(copy)(attribute=proto.attribute)
        attributes = {each.name: each for each in bare.attribute}
        node = Node(proto.op_type, written.node.inputs, written.node.outputs, attributes, proto.domain)
        differs = {
            "domain": node.domain != old.domain,
            "attribute": list(attribute_bytes(bare)) != list(stated),
            "input": node.inputs[: len(old.inputs)] != old.inputs,
            "output": node.outputs[: len(old.outputs)] != old.outputs,
        }
        filling = type(copy)(attribute=bare.attribute if differs["attribute"] else ())
        if node.op_type != old.op_type:
            filling.op_type = node.op_type
        if node.domain and differs["domain"]:
            filling.domain = node.domain
        return cls(
            written._replace(node=node),
            _pick(node.inputs, places),
            _pick(node.outputs, places),
            tuple(field for field in differs if differs[field]) if is_main else (),
            filling.SerializeToString(),
            _pick(node.inputs[0 if differs["input"] else len(old.inputs) :], places),
            _pick(node.outputs[0 if differs["output"] else len(old.outputs) :], places),
        )

    def named(self, names: Names) -> Written:
        """The node, with names."""
        node = self.written.node
        inputs = self.inputs(names) if self.inputs else ()
        outputs = self.outputs(names) if self.outputs else ()
        node = Node(node.op_type, inputs, outputs, node.attributes, node.domain)
        return self.written._replace(node=node)

    def fill(self, proto: Any, names: Names) -> None:
        """Write it, with names."""
        for field in self.cleared:
            proto.ClearField(field)
        if self.filling:
            proto.MergeFromString(self.filling)
        if self.new_inputs:
            proto.input.extend(self.new_inputs(names))
        if self.new_outputs:
            proto.output.extend(self.new_outputs(names))


def _pick(chosen: Names, places: Mapping[str, int]) -> Pick | None:
    """Picks out of all names those at the places of these; `None` if there are none."""
    positions = [places[name] for name in chosen]
    if len(positions) == 1:
        return itemgetter(slice(positions[0], positions[0] + 1))
    return itemgetter(*positions) if positions else None
