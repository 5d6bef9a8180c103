"""Sharding specifications of nodes, which name inputs and outputs of the node."""

from collections.abc import Mapping

from opshift.model.graphs import remove_messages
from opshift.model.messages import NodeProto


def rename_shardings(node: NodeProto, names: Mapping[str, str]) -> None:
    """Rename the tensors in the sharding specifications of a node; an empty name removes a specification.

    Call this function wherever the inputs and outputs of a node are renamed.
    """
    # The message classes of an older `onnx` have no device configurations.
    for each in getattr(node, "device_configurations", ()):
        specs = each.sharding_spec
        if not specs:
            continue
        for spec in specs:
            spec.tensor_name = names.get(spec.tensor_name, spec.tensor_name)
        remove_messages(specs, [not spec.tensor_name for spec in specs])


def remove_foreign_shardings(node: NodeProto) -> None:
    """Remove the sharding specifications of tensors that a node neither reads nor produces."""
    configurations = getattr(node, "device_configurations", ())
    tensors = {*node.input, *node.output} if configurations else ()
    for each in configurations:
        if specs := each.sharding_spec:
            remove_messages(specs, [spec.tensor_name not in tensors for spec in specs])
