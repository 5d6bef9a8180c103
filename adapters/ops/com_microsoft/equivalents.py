"""Replace ONNX nodes by com.microsoft nodes with different inputs, outputs or attributes."""

from typing import Any

from opshift.adapters import CannotConvert, Node, Rewriter
from opshift.adapters.core.equivalents import EquivalentNode, equivalent
from opshift.adapters.emit.expression import FLOAT_TYPES
from opshift.adapters.emit.quantization import is_per_tensor, scheme_of


def _require_for_equivalent(condition: bool, name: str, meaning: str) -> None:
    if not condition:
        raise CannotConvert(f"{name} {meaning}", "operator.no-equivalent", subject=name)


@equivalent("Gelu", "Gelu")
def gelu(node: Node, out: Rewriter) -> EquivalentNode:
    """Accept only `approximate` none, the exact formula; drop the attribute."""
    _require_for_equivalent(node.attribute("approximate", b"none") == b"none", "approximate", "is tanh")
    return EquivalentNode(node.inputs, node.outputs, {})


@equivalent("Gelu", "FastGelu")
def fast_gelu(node: Node, out: Rewriter) -> EquivalentNode:
    """Accept only `approximate` tanh; drop the attribute."""
    _require_for_equivalent(node.attribute("approximate", b"none") == b"tanh", "approximate", "is none")
    return EquivalentNode(node.inputs, node.outputs, {})


@equivalent("Swish", "QuickGelu")
def quick_gelu(node: Node, out: Rewriter) -> EquivalentNode:
    """Set `alpha`, because the two operators have different defaults."""
    return EquivalentNode(node.inputs, node.outputs, {"alpha": node.attribute("alpha", 1.0)})


@equivalent("Unsqueeze", "ExpandDims")
def expand_dims(node: Node, out: Rewriter) -> EquivalentNode:
    """Accept only a constant with one element as `axes`, and pass the element as a scalar."""
    axes = out.require_constant(node.inputs[1], "axes").values
    _require_for_equivalent(len(axes) == 1, "axes", f"has {len(axes)} values, and ExpandDims has one axis")
    return EquivalentNode((node.inputs[0], out.constant(axes[0], "int32")), node.outputs, {})


@equivalent("Unique", "Unique")
def unique(node: Node, out: Rewriter) -> EquivalentNode:
    """Accept only vectors with `sorted` 0, and drop the output `indices`; floats require an allowance."""
    _require_for_equivalent(node.attribute("sorted", 1) == 0, "sorted", "is 1")
    _require_for_equivalent(out.rank(node.inputs[0]) == 1, "X", "is not a vector")
    _require_for_equivalent(not out.is_used(node.output(1)), "indices", "is used")
    if out.element_type(node.inputs[0]) in FLOAT_TYPES:
        out.allow("approximate", "Unique of com.microsoft lists each NaN, and Unique of ONNX only one")
    outputs = (node.output(position) or out.fresh("unused") for position in (0, 2, 3))
    return EquivalentNode(node.inputs, tuple(outputs), {})


@equivalent("Pad", "Pad")
def pad(node: Node, out: Rewriter) -> EquivalentNode:
    """Accept only nodes without `axes` and with a mode other than `wrap`."""
    _require_for_equivalent(not node.input(3), "axes", "is given")
    _require_for_equivalent(node.attribute("mode", b"constant") != b"wrap", "mode", "is wrap")
    return EquivalentNode(node.inputs, node.outputs, node.attributes)


@equivalent("GridSample", "GridSample")
def grid_sample(node: Node, out: Rewriter) -> EquivalentNode:
    """Accept 4-D data, and rename the modes `linear` and `cubic` to `bilinear` and `bicubic`."""
    _require_for_equivalent(out.rank(node.inputs[0]) == 4, "X", "does not have 4 dimensions")
    mode = node.attribute("mode", b"bilinear")
    mode = {b"linear": b"bilinear", b"cubic": b"bicubic"}.get(mode, mode)
    return EquivalentNode(node.inputs, node.outputs, {**node.attributes, "mode": mode})


@equivalent("RotaryEmbedding", "RotaryEmbedding")
def rotary_embedding(node: Node, out: Rewriter) -> EquivalentNode:
    """Move `position_ids` in front of the caches, and set `num_heads` if kernels require it."""
    data, cosines, sines, positions = (node.input(position) for position in range(4))
    _require_for_equivalent(bool(positions), "position_ids", "is omitted")
    rows, length = out.known_dimension(cosines, 0), out.known_dimension(data, -2)
    is_covered = rows is None or length is None or rows >= length
    _require_for_equivalent(
        is_covered, "cos_cache", f"has {rows} rows for {length} tokens, which kernels refuse"
    )
    attributes = dict(node.attributes)
    if node.attribute("rotary_embedding_dim", 0) and not node.attribute("num_heads", 0):
        # With `rotary_embedding_dim`, kernels require `num_heads` even if the data has a heads dimension.
        attributes["num_heads"] = out.dimension(data, 1)
    return EquivalentNode((data, positions, cosines, sines), node.outputs, attributes)


@equivalent("QuantizeLinear", "QuantizeLinear")
@equivalent("DequantizeLinear", "DequantizeLinear")
def quantize(node: Node, out: Rewriter) -> EquivalentNode:
    """Keep `axis` unless quantization is per tensor; refuse blocks, `output_dtype` and `precision`."""
    _require_for_equivalent(not node.attribute("block_size", 0), "block_size", "is set")
    for name in ("output_dtype", "precision"):
        _require_for_equivalent(not node.attribute(name, 0), name, "is set")
    attributes: dict[str, Any] = {}
    if not is_per_tensor(scheme_of(node), out):
        attributes = {"axis": node.attribute("axis", 1)}
    return EquivalentNode(node.inputs, node.outputs, attributes)
