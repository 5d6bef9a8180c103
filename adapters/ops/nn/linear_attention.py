"""LinearAttention (introduced in opset 27): a Scan over the tokens, which update and read a state.

Queries are laid out as (batch, token, shared head, group, size), so a group of queries reads one state.
"""

import math
from typing import NamedTuple

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.heads import merged_size, size_per_head
from opshift.adapters.emit.shapes import computed_dimension, dimension, reshape, shape_tensor
from opshift.adapters.emit.subgraphs import SubgraphBuilder

SCAN_OPSET = 9
"""First opset in which scanned inputs have axes."""


class Tokens(NamedTuple):
    """Inputs with the token as dimension 1; `""` for inputs that the update rule does not use."""

    query: str
    key: str
    value: str
    decay: str
    beta: str


@adapter("LinearAttention", 27, 26)
def expand_linear_attention(node: Node, out: Rewriter) -> None:
    """Rewrite as a Scan over the tokens, in float like the function body, and cast the results back."""
    tokens = _tokens(node, out)
    scanned = [name for name in tokens if name]
    state, results = out.emit_all(
        "Scan",
        [_initial_state(node, tokens, out), *scanned],
        2,
        opset=SCAN_OPSET,
        body=_body(tokens, out).graph(),
        num_scan_inputs=len(scanned),
        scan_input_axes=[1] * len(scanned),
    )
    scaled = out.emit("Mul", [results, _scale(node, tokens, out)])
    hidden = merged_size(node.inputs[2], node.attribute("kv_num_heads"), node.attribute("q_num_heads"), out)
    packed = reshape(out.emit("Transpose", [scaled], perm=(1, 0, 2, 3, 4)), (0, 0, hidden), out)
    out.cast(packed, out.element_type(node.inputs[0]), node.outputs[:1])
    if out.is_used(node.output(1)):
        out.cast(state, _state_type(node, out), [node.output(1)])


def _tokens(node: Node, out: Rewriter) -> Tokens:
    heads, shared = node.attribute("q_num_heads"), node.attribute("kv_num_heads")
    query, key, value = (
        size_per_head(name, count, out)
        for name, count in zip(node.inputs[:3], (heads, shared, shared), strict=True)
    )
    decay = node.input(4) and _split_heads(
        node.input(4), (0, 0, shared, size_per_head(node.input(4), shared, out), 1), out
    )
    return Tokens(
        _split_heads(node.inputs[0], (0, 0, shared, heads // shared, query), out),
        _split_heads(node.inputs[1], (0, 0, shared, key, 1), out),
        _split_heads(node.inputs[2], (0, 0, shared, 1, value), out),
        decay and out.emit("Exp", [decay]),
        node.input(5)
        and _split_heads(node.input(5), (0, 0, size_per_head(node.input(5), 1, out), 1, 1), out),
    )


def _split_heads(name: str, sizes: tuple[int, ...], out: Rewriter) -> str:
    return reshape(_as_float(name, out), sizes, out)


def _as_float(name: str, out: Rewriter) -> str:
    return name if out.element_type(name) == "float" else out.cast(name, "float")


def _body(tokens: Tokens, out: Rewriter) -> SubgraphBuilder:
    """Return the body: decay the state, correct it at the token's key, and read it by the query."""
    body = SubgraphBuilder(out)
    state = body.input("float")
    token = Tokens(*(name and body.input("float") for name in tokens))
    if token.decay:
        state = body.emit("Mul", [state, token.decay])
    value = token.value
    if token.beta:
        key_row = body.emit("Transpose", [token.key], perm=(0, 1, 3, 2))
        retrieved = body.emit("MatMul", [key_row, state])
        value = body.emit("Mul", [token.beta, body.emit("Sub", [value, retrieved])])
    state = body.emit("Add", [state, body.emit("Mul", [token.key, value])])
    body.output(state, "float")
    body.output(body.emit("MatMul", [token.query, state]), "float")
    return body


def _initial_state(node: Node, tokens: Tokens, out: Rewriter) -> str:
    """Return the past state, or zeros: a (key size, value size) matrix for each shared head."""
    if node.input(3):
        return _as_float(node.input(3), out)
    batch, shared = dimension(node.inputs[0], 0, out), node.attribute("kv_num_heads")
    sizes = (computed_dimension(tokens.key, 3, out), computed_dimension(tokens.value, 4, out))
    shape = shape_tensor((batch, shared, *sizes), out)
    return out.emit("ConstantOfShape", [shape], opset=9, value=Tensor("float", (1,), (0.0,)))


def _scale(node: Node, tokens: Tokens, out: Rewriter) -> str:
    """Return `scale`, or one over the square root of the key size if it is 0."""
    scale, width = node.attribute("scale", 0.0), out.shape(node.inputs[0])
    if scale:
        return out.constant(scale, "float")
    if width is not None and width[2]:
        return out.constant(math.sqrt(node.attribute("q_num_heads") / width[2]), "float")
    size = out.cast(computed_dimension(tokens.query, 4, out), "float")
    return out.emit("Reciprocal", [out.emit("Sqrt", [size])])


def _state_type(node: Node, out: Rewriter) -> str:
    """Return the type of the past state, or of the declared output, or of the queries."""
    declared = out.known_element_type(node.output(1))
    if node.input(3) or declared is None:
        return out.element_type(node.input(3) or node.inputs[0])
    return declared
