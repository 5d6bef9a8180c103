"""Cast, CastLike and BitCast, whose target type is a name, a number or the type of a second input."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter, function_body
from opshift.adapters.emit.expression import cast
from opshift.model.element_types import BY_NAME, BY_NUMBER, INTEGER_BITS


@adapter("BitCast", 26, 25)
def replace_bit_cast_by_cast(node: Node, out: Rewriter) -> None:
    """Emit Identity for equal types, and Cast from integer or bool to integer of equal width; else refuse."""
    source = out.element_type(node.inputs[0])
    target = BY_NUMBER[node.attribute("to")].name
    widths = {**INTEGER_BITS, "bool": 8}
    if source == target:
        out.emit("Identity", node.inputs, node.outputs)
    elif target in INTEGER_BITS and widths.get(source) == INTEGER_BITS[target]:
        cast(node.inputs[0], target, out, node.outputs)
    else:
        reason = f"no operator of opset 25 reinterprets the bits of {source} as {target}"
        remedy = "use Cast if the value is to be converted, or reinterpret the bits outside the model"
        raise CannotConvert(reason, "operator.no-equivalent", remedy=remedy)


@adapter("Cast", 1, 6)
def convert_type_name_to_number(node: Node, out: Rewriter) -> None:
    """Replace the type name in `to`, such as `FLOAT`, with the number of the TensorProto.DataType."""
    to = node.attribute("to")
    name = to.decode() if isinstance(to, bytes) else str(to)
    if name.lower() not in BY_NAME:
        reason = f"attribute 'to' is {name!r}, which is not an element type"
        remedy = "use the name of a TensorProto.DataType, such as FLOAT"
        raise CannotConvert(reason, "node.invalid", remedy=remedy)
    out.replace(node, attributes={"to": BY_NAME[name.lower()].number})


@adapter("Cast", 6, 1)
def convert_type_number_to_name(node: Node, out: Rewriter) -> None:
    """Replace the number in `to` with the name of the TensorProto.DataType in capitals."""
    name = BY_NUMBER[node.attribute("to")].name.upper()
    out.replace(node, attributes={"to": name.encode()})


@adapter("CastLike", 15, 14)
def replace_cast_like_with_cast(node: Node, out: Rewriter) -> None:
    """Emit a Cast to the element type of the second input, which must be known."""
    like = out.element_type(node.inputs[1])
    out.replace(node, op_type="Cast", inputs=node.inputs[:1], attributes={"to": BY_NAME[like].number})


@function_body("CastLike", 19, 21, 23, 24, 25)
def cast_like_second_input(node: Node, out: Rewriter) -> None:
    """Emit a Cast with the same attributes to the element type of the second input."""
    to = BY_NAME[out.element_type(node.inputs[1])].number
    out.replace(node, op_type="Cast", inputs=node.inputs[:1], attributes={**node.attributes, "to": to})
