"""OptionalHasElement and OptionalGetElement, which support tensor and sequence inputs since opset 18."""

from opshift.adapters import Node, Rewriter, UnknownElementType, adapter


@adapter("OptionalHasElement", 18, 15)
def replace_has_element_by_constant(node: Node, out: Rewriter) -> None:
    """Replace the check by a constant: true for a tensor or sequence, false for an omitted input."""
    if node.input(0) and _is_optional(node.input(0), out):
        out.replace(node)
    else:
        out.emit("Identity", [out.constant(bool(node.input(0)), "bool")], node.outputs)


def _is_optional(name: str, out: Rewriter) -> bool:
    known = out.known_element_type(name)
    if known is None:
        reason = f"the type of {name!r} is unknown, so it may be optional or not"
        raise UnknownElementType(name, reason)
    return known.startswith("optional(")


@adapter("OptionalGetElement", 18, 15)
def replace_get_element_by_identity(node: Node, out: Rewriter) -> None:
    """Replace OptionalGetElement of a tensor or sequence by Identity."""
    if _is_optional(node.inputs[0], out):
        out.replace(node)
    else:
        # Identity accepts sequences since opset 14, and optionals since opset 16.
        out.emit("Identity", node.inputs, node.outputs, opset=16)
