"""Node template: a serialized node with its value names left open, to write equivalent nodes quickly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple

from opshift.converter.rewrite.rewrite_node import Emission
from opshift.converter.rewrite.write_nodes import fill_node, update_node
from opshift.model.node import Node, serialized_attributes

ValueNames = tuple[str, ...]
"""All value names of one rewrite; templates refer to them by position."""

NameSelector = Callable[[ValueNames], ValueNames]
"""Function that selects the names of a node from all names of the rewrite."""

EMPTY_NODE: Final = Node("", (), (), {})
"""Node without content: the start of a node that is added."""


class NodeTemplate(NamedTuple):
    """Serialized node template with the value names left open.

    Attributes:
        emission: the node; its attributes are copies that do not keep a model alive.
        inputs, outputs: selectors of its names from all names of the rewrite.
        cleared_fields: fields to clear in the NodeProto that it overwrites.
        payload: changed fields, serialized.
        new_inputs, new_outputs: selectors of the names to append to the names that remain.
    """

    emission: Emission
    inputs: NameSelector | None
    outputs: NameSelector | None
    cleared_fields: tuple[str, ...]
    payload: bytes
    new_inputs: NameSelector | None
    new_outputs: NameSelector | None

    @classmethod
    def of(cls, written: Emission, original: Node, is_main: bool, places: Mapping[str, int]) -> NodeTemplate:
        """Return the template of a node that overwrites a node of the model, or that is added next to it.

        Args:
            written: the node.
            original: the node that is rewritten.
            is_main: whether the node overwrites the original.
            places: positions of all names of the rewrite.
        """
        copy = original.copy_proto()
        old, old_attributes = (original, serialized_attributes(copy)) if is_main else (EMPTY_NODE, ())
        proto = copy if is_main else type(copy)()
        if is_main:
            update_node(proto, written, original)
        else:
            fill_node(proto, written, copy)
        attribute_proto = type(copy)(attribute=proto.attribute)
        attributes = {each.name: each for each in attribute_proto.attribute}
        node = Node(proto.op_type, written.node.inputs, written.node.outputs, attributes, proto.domain)
        # Only differences are stored: unchanged fields remain in the NodeProto that is overwritten.
        differs = {
            "domain": node.domain != old.domain,
            "attribute": list(serialized_attributes(attribute_proto)) != list(old_attributes),
            "input": node.inputs[: len(old.inputs)] != old.inputs,
            "output": node.outputs[: len(old.outputs)] != old.outputs,
        }
        filling = type(copy)(attribute=attribute_proto.attribute if differs["attribute"] else ())
        if node.op_type != old.op_type:
            filling.op_type = node.op_type
        if node.domain and differs["domain"]:
            filling.domain = node.domain
        return cls(
            written._replace(node=node),
            _selector(node.inputs, places),
            _selector(node.outputs, places),
            tuple(field for field in differs if differs[field]) if is_main else (),
            filling.SerializeToString(),
            _selector(node.inputs[0 if differs["input"] else len(old.inputs) :], places),
            _selector(node.outputs[0 if differs["output"] else len(old.outputs) :], places),
        )

    def instantiate(self, names: ValueNames) -> Emission:
        """Return the node with the given names."""
        node = self.emission.node
        inputs = self.inputs(names) if self.inputs else ()
        outputs = self.outputs(names) if self.outputs else ()
        node = Node(node.op_type, inputs, outputs, node.attributes, node.domain)
        return self.emission._replace(node=node)

    def fill(self, proto: Any, names: ValueNames) -> None:
        """Write the node with the given names into a NodeProto."""
        for field in self.cleared_fields:
            proto.ClearField(field)
        if self.payload:
            proto.MergeFromString(self.payload)
        if self.new_inputs:
            proto.input.extend(self.new_inputs(names))
        if self.new_outputs:
            proto.output.extend(self.new_outputs(names))


def _selector(chosen: ValueNames, places: Mapping[str, int]) -> NameSelector | None:
    """Return a selector of these names from all names; `None` if the list is empty."""
    positions = [places[name] for name in chosen]
    if len(positions) == 1:  # itemgetter of a single index would return a string, not a tuple
        return itemgetter(slice(positions[0], positions[0] + 1))
    return itemgetter(*positions) if positions else None
