"""FlexAttention: Attention with subgraphs that modify the scores and the probabilities."""

import math
from functools import partial

from opshift.adapters import Node, Rewriter, function_body
from opshift.adapters.emit.subgraphs import LoopBuilder
from opshift.model.element_types import BY_NUMBER


@function_body("FlexAttention", 1, domain="ai.onnx.preview")
def expand_flex_attention(node: Node, out: Rewriter) -> None:
    """Multiply queries and keys, normalize the scores by Softmax, and multiply them by the values.

    Query heads are grouped by the key head that they share: the groups are a dimension of their own.
    """
    out = out.for_opset(18, "")  # the target of a conversion may lack attributes of Shape
    emit = partial(out.emit, domain="")
    query, key, value = node.inputs
    element_type = out.element_type(query)
    compute_type = "double" if element_type == "double" else "float"
    if "softmax_precision" in node.attributes:
        compute_type = BY_NUMBER[node.attribute("softmax_precision")].name
    shared_heads = emit("Shape", [key], end=2)

    def grouped(data: str) -> str:
        sizes = [shared_heads, out.int64([-1]), emit("Shape", [data], start=2)]
        return emit("Reshape", [data, emit("Concat", sizes, axis=0)])

    def multiply_by_group(data: str, shared: str) -> str:
        products = emit("MatMul", [grouped(data), emit("Unsqueeze", [shared, out.int64([2])])])
        sizes = [emit("Shape", [data], end=3), emit("Shape", [shared], start=3)]
        return emit("Reshape", [products, emit("Concat", sizes, axis=0)])

    products = multiply_by_group(query, emit("Transpose", [key], perm=(0, 1, 3, 2)))
    scores = out.cast(emit("Mul", [products, _scale(node, element_type, out)]), compute_type)
    scores = _apply_subgraph(node, "score_mod", scores, compute_type, out)
    weights = emit("Softmax", [scores], axis=-1)
    weights = _apply_subgraph(node, "prob_mod", weights, compute_type, out)
    out.cast(multiply_by_group(weights, out.cast(value, compute_type)), element_type, node.outputs)


def _scale(node: Node, element_type: str, out: Rewriter) -> str:
    """Return `scale`, by default one over the square root of the head size."""
    query, scale = node.inputs[0], node.attribute("scale")
    size = out.known_dimension(query, 3)
    if scale is not None or size:
        return out.constant(1 / math.sqrt(size or 1) if scale is None else scale, element_type)
    computed = out.cast(out.emit("Shape", [query], start=3, domain=""), "float")
    root = out.emit("Sqrt", [computed], domain="")
    return out.cast(out.emit("Reciprocal", [root], domain=""), element_type)


def _apply_subgraph(node: Node, attribute: str, value: str, element_type: str, out: Rewriter) -> str:
    """Apply a subgraph with one input, if the node has it, by a Loop with one iteration."""
    if attribute not in node.attributes:
        return value
    graph = node.attribute(attribute)
    body = LoopBuilder(out)
    body.emit("Identity", [body.input(element_type)], [body.provide(graph.input[0].name)], domain="")
    body.embed(node.attributes[attribute])
    body.output(body.embedded_name(graph.output[0].name), element_type)
    return body.emit_loop(out.int64(1), [value], out)[0]
