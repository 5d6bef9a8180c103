"""Shape rules of com.acme."""

from opshift.shapes import Shape, ShapeContext, Shapes, data_rule


@data_rule("acme_thin")
def thin(node: ShapeContext, data: Shape) -> Shapes:
    """Divide the number of rows by the stride, and round up."""
    stride = node.integer("stride")
    if not data or not stride or stride < 1:
        return []
    rows = None if data[0] is None else -(-data[0] // stride)
    return [(rows, *data[1:])]
