"""Output shapes of Shape, and of operators that create tensors, such as Constant and Range."""

from opshift.model.types import Symbol
from opshift.registry.shapes.dims import unknown
from opshift.registry.shapes.rule_table import Shapes, rule
from opshift.registry.shapes.shape_context import ShapeContext


@rule("shape", rank=1)
def shape_of_shape(node: ShapeContext) -> Shapes:
    """Infer a 1-D output with one element per dimension of the input, from `start` to `end`."""
    data, start, end = node.shape(0), node.integer("start", 0), node.integer("end")
    return [(None if data is None else len(data[start:end]),)]


@rule("constant", rank_inputs=())
def constant(node: ShapeContext) -> Shapes:
    """Infer the shape of the tensor, number, text or list in the attribute that the node has."""
    kinds = ("value_float", "value_int", "value_string")
    names = ("value", "sparse_value", *kinds, *(f"{each}s" for each in kinds))
    given = [each for each in names if node.attribute(each) is not None]
    if len(given) != 1:
        return [None] if given else []
    (name,) = given
    if name in kinds:
        return [()]
    if name not in ("value", "sparse_value"):
        return [(node.list_length(name),)]
    dims = getattr(node.attribute(name), "dims", None)
    return [None if dims is None else tuple(dims)]


@rule("constant_of_shape", ranking_list="input", rank_inputs=())
def constant_of_shape(node: ShapeContext) -> Shapes:
    """Infer the shape whose dimensions are the elements of the input."""
    listed = node.setting("input")
    return [unknown(listed.length) if listed.values is None and listed.length is not None else listed.values]


@rule("range", rank=1)
def range_(node: ShapeContext) -> Shapes:
    """Infer the length of the 1-D output from constant integers; for floats, the length is unknown."""
    start, limit, step = (node.constant_integer(position) for position in range(3))
    if start is None or limit is None or not step:
        return [(None,)]
    if Symbol in (type(start), type(limit), type(step)):
        # With a symbol, the order of the bounds is known only for start 0 and step 1.
        return [(limit if (start, step) == (0, 1) else None,)]
    return [(len(range(start, limit, step)),)]


@rule("mel_weight_matrix", rank=2)
def mel_weight_matrix(node: ShapeContext) -> Shapes:
    """Infer dft_length // 2 + 1 rows (spectrogram bins), and one column per mel bin."""
    bins, size = node.constant_integer(0), node.constant_integer(1)
    return [(None if size is None else size // 2 + 1, bins)]
