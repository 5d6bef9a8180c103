"""RNN, GRU and LSTM: `layout` since opset 14, `output_sequence` before opset 7."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter

STATE_INPUTS = (5, 6)
"""Positions of the initial states among the inputs; the states have a batch dimension, too."""

WITH_BETA = frozenset({b"affine", b"scaledtanh", b"hardsigmoid"})

PARAMETRIC_ACTIVATIONS = {
    "activation_alpha": WITH_BETA | {b"leakyrelu", b"thresholdedrelu", b"elu"},
    "activation_beta": WITH_BETA,
}
"""Activations that use each attribute, one value each; GRU defines default values since version 3."""


@adapter(("RNN", "GRU", "LSTM"), 14, 7)
def transpose_batch_first_layout(node: Node, out: Rewriter) -> None:
    """Transpose inputs and outputs if `layout` is 1, which puts the batch before time."""
    attributes = node.without("layout")
    if not node.attribute("layout", 0):
        out.replace(node, attributes=attributes)
        return
    inputs = list(node.inputs)
    for position in (0, *STATE_INPUTS):
        if node.input(position):
            inputs[position] = out.emit("Transpose", [node.input(position)], perm=[1, 0, 2])
    outputs = [out.fresh(node.op_type.lower()) if name else "" for name in node.outputs]
    out.replace(node, inputs=inputs, outputs=outputs, attributes=attributes)
    for position, (transposed, name) in enumerate(zip(outputs, node.outputs, strict=True)):
        if name:
            # With layout 0, Y is (sequence, directions, batch, hidden), Y_h and Y_c lack the sequence.
            perm = [1, 0, 2] if position else [2, 0, 1, 3]
            out.emit("Transpose", [transposed], [name], perm=perm)


@adapter(("RNN", "LSTM"), 7, 1)
@adapter("GRU", 7, 3)
def set_output_sequence(node: Node, out: Rewriter) -> None:
    """Set `output_sequence` to 1 if the node has output `Y`, which versions below 7 otherwise omit."""
    if node.output(0):
        out.replace(node, attributes={**node.attributes, "output_sequence": 1})
    else:
        out.replace(node)


@adapter("GRU", 3, 1)
def remove_linear_before_reset(node: Node, out: Rewriter) -> None:
    """Remove `linear_before_reset`, add the required output `Y_h`, and set the direction.

    The default of `direction` is misspelled in the definition of version 1, so the attribute is always set.
    """
    if node.attribute("linear_before_reset", 0):
        raise CannotConvert("linear_before_reset is 1, which GRU-1 does not support", "value.unsupported")
    for attribute, activations in PARAMETRIC_ACTIVATIONS.items():
        given = len(node.attribute(attribute, ()))
        takers = [name for name in node.attribute("activations", ()) if name.lower() in activations]
        if given < len(takers):
            name = takers[given].decode()
            reason = f"activation {name!r} relies on the default of {attribute}, which GRU-1 does not define"
            remedy = f"set {attribute} to {len(takers)} values, one for each activation with this parameter"
            raise CannotConvert(reason, "attribute.missing", remedy=remedy)
    attributes = {"direction": b"forward", **node.without("linear_before_reset")}
    outputs = (node.output(0), node.output(1) or out.fresh("last"))
    out.replace(node, outputs=outputs, attributes=attributes)
