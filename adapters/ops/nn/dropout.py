"""Dropout: versions differ in the selection of inference or training, and in the type of the mask."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter, expression, require_supported_types
from opshift.model.element_types import BY_NAME

DEFAULT_RATIO = 0.5


@adapter("Dropout", 7, 10)
@adapter("Dropout", 10, 7)
def cast_mask(node: Node, out: Rewriter) -> None:
    """Cast a used mask, which is boolean in version 10, and has the data's type in version 7."""
    mask = node.output(1)
    if not out.is_used(mask):
        out.replace(node, outputs=node.outputs[:1])
        return
    element_type = "bool" if out.source.since_version == 10 else out.element_type(node.inputs[0])
    converted = out.fresh("mask")
    out.replace(node, outputs=[node.outputs[0], converted])
    out.cast(converted, element_type, [mask])


@adapter("Dropout", 6, 7)
def drop_is_test(node: Node, out: Rewriter) -> None:
    """Drop `is_test`; refuse training, which versions 7 and 10 do not support."""
    if not node.attribute("is_test", 0):
        reason = "is_test is 0, which drops elements at random; Dropout-7 returns its input unchanged"
        remedy = "set is_test to 1 if the model is for inference"
        raise CannotConvert(reason, "training.unsupported", remedy=remedy)
    out.replace(node, attributes=node.without("is_test"))


@adapter("Dropout", 10, 12)
def move_ratio_to_input(node: Node, out: Rewriter) -> None:
    """Move `ratio` to an input, but drop a ratio outside of [0, 1), which runtimes always refuse."""
    ratio = node.attribute("ratio", DEFAULT_RATIO)
    is_needed = 0 <= ratio < 1 and ratio != DEFAULT_RATIO
    inputs = [*node.inputs, out.constant(ratio, "float")] if is_needed else node.inputs
    out.replace(node, inputs=inputs, attributes=node.without("ratio"))


@adapter("Dropout", 12, 10)
def move_ratio_to_attribute(node: Node, out: Rewriter) -> None:
    """Move `ratio` to an attribute, drop `seed`, and make a used mask all true; refuse training."""
    ratio = out.constant_value(node.input(1))
    training = out.constant_value(node.input(2))
    if node.input(2) and (training is None or training.scalar) and not (ratio and ratio.scalar == 0):
        reason = "training_mode may be true; Dropout-10 never drops elements"
        remedy = "omit training_mode, or set it to a constant false, if the model is for inference"
        raise CannotConvert(reason, "training.unsupported", remedy=remedy)
    # Check only the data and the first output, because ratio and mask are rewritten below.
    require_supported_types(node.with_(inputs=node.inputs[:1], outputs=node.outputs[:1]), out)
    attributes = {"ratio": float(ratio.scalar)} if ratio else {}
    out.replace(node, inputs=node.inputs[:1], outputs=node.outputs[:1], attributes=attributes)
    _emit_full_mask(node, out)


@expression("Dropout", 12, 13, 22)
def express_by_random_numbers(node: Node, out: Rewriter) -> None:
    """Rewrite training as a product with a random mask, and inference as an Identity."""
    data, training = node.inputs[0], node.input(2)
    known = out.constant_value(training) if training else None
    if not training or (known and not known.scalar):
        out.emit("Identity", [data], node.outputs[:1])
        _emit_full_mask(node, out)
        return
    one = out.constant(1.0, "float")
    ratio = out.cast(node.input(1), "float") if node.input(1) else out.constant(DEFAULT_RATIO, "float")
    # Without training, use the ratio 0, which keeps all elements, and scales them by 1.
    ratio = out.emit("Where", [training, ratio, out.constant(0.0, "float")])
    attributes = node.without()
    if "seed" in attributes:
        attributes["seed"] = float(node.attribute("seed"))
    values = out.cast(data, "float")
    numbers = out.emit("RandomUniformLike", [values], dtype=BY_NAME["float"].number, **attributes)
    mask = node.output(1) or out.fresh("mask")
    out.emit("Not", [out.emit("Less", [numbers, ratio])], [mask])
    element_type = out.element_type(data)
    scale = out.cast(out.emit("Div", [one, out.emit("Sub", [one, ratio])]), element_type)
    kept = out.cast(mask, element_type)
    out.emit("Mul", [out.emit("Mul", [data, scale]), kept], node.outputs[:1])


def _emit_full_mask(node: Node, out: Rewriter) -> None:
    """Emit a mask that is True for all elements, if the output mask is used."""
    mask = node.output(1)
    if out.is_used(mask):
        nonzero = out.cast(node.inputs[0], "bool")
        # `nonzero or not nonzero` is true everywhere, and has the shape of the data.
        out.emit("Or", [nonzero, out.emit("Not", [nonzero])], [mask])


@adapter("Dropout", 7, 6)
def add_is_test(node: Node, out: Rewriter) -> None:
    """Set `is_test` to 1: version 7 supports only inference, but version 6 trains by default."""
    out.replace(node, attributes={**node.attributes, "is_test": 1})
