"""No adapter builds a list from a size that the model declares, unless a limit is checked before."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from pathlib import Path

import pytest
from onnx import TensorProto, helper

import opshift

ROOT = Path(__file__).parents[2] / "adapters"

SOURCES = frozenset(
    ("attribute", "dimension", "known_dimension", "shape", "known_shape", "constant_value", "prod")
)
"""Functions that return what the model declares; `values` and `dims` are attributes with such content.

Functions of adapters that return numbers computed from these are added, unless they check a limit.
"""

RESULTS = ("int", "Dimension", "list", "tuple", "Sequence", "Shape")
"""Parts of the annotations of results with numbers."""

LIMITS = frozenset(("require_elements", "require_rank", "require_at_most", "element_count_of"))

BUILDERS = frozenset(("range", "product", "permutations", "repeat"))

IS_RANK = "rank() refuses ranks above MAX_RANK, and the length of an inferred shape is at most that"
IS_LISTED = "a list in the model has this length"
IS_COMPARED = "compared with a constant in the same function"
IS_LAZY = "a range, whose length is checked by int64() or constant() before it is read"

REVIEWED = {
    "emit/indices.py _constant_positions": "the only caller compares the product with a constant",
    "emit/indices.py _position_column": IS_COMPARED,
    "emit/shapes.py broadcast_shape": IS_RANK,
    "ops/com_microsoft/fused_products.py _transposed": IS_RANK,
    "ops/com_microsoft/quantized.py _with_counted_padding": IS_LISTED,
    "ops/com_microsoft/quantized.py expand_quantized_global_average_pool": IS_RANK,
    "ops/com_microsoft/tensor.py expand_n_gram_repeat_block": "emit() limits the nodes",
    "ops/math/activations.py swap_axis_with_last": IS_RANK,
    "ops/math/broadcasting.py append_trailing_dimensions": IS_RANK,
    "ops/math/cumulative.py _accumulate_by_doubling": IS_RANK,
    "ops/math/einsum.py _take_diagonals": IS_LAZY,
    "ops/math/linear_algebra.py expand_det": IS_COMPARED,
    "ops/math/losses.py _class_indices": IS_COMPARED,
    "ops/nn/attention.py full_mask": IS_RANK,
    "ops/nn/col2im.py _index_lists": "the caller requires the product of all sizes",
    "ops/nn/normalization.py _neutral_bias": IS_COMPARED,
    "ops/nn/tf_idf_vectorizer.py _select": IS_LISTED,
    "ops/nn/tf_idf_vectorizer.py terms": IS_LISTED,
    "ops/tensor/gather_scatter.py _constant_sources": IS_COMPARED,
    "ops/tensor/gather_scatter.py scatter_at_explicit_indices": IS_LAZY,
    "ops/tensor/negative_axes.py make_axes_nonnegative": IS_LISTED,
    "ops/tensor/pad.py _pads_of_all_axes": IS_RANK,
    "ops/tensor/pad.py crop_then_pad": IS_LISTED,
    "ops/tensor/selection.py _classes": IS_COMPARED,
    "ops/tensor/slice.py _axis_slices": IS_COMPARED,
    "ops/tensor/slice.py replace_num_outputs_with_sizes": IS_LISTED,
    "ops/traditionalml/trees.py tracks": IS_LISTED,
}
"""Functions that build lists from declared sizes without calling a limit, with the reason."""


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _is_declared(node: ast.AST, names: set[str], sources: Set[str]) -> bool:
    """Return whether an expression depends on a declared size, other than by the length of a list."""
    if isinstance(node, ast.Call) and _name(node) == "len":
        return False
    return any(
        (isinstance(each, ast.Call) and _name(each) in sources)
        or (isinstance(each, ast.Attribute) and each.attr in ("values", "dims"))
        or (isinstance(each, ast.Name) and each.id in names)
        for each in ast.walk(node)
    )


def _declared_names(function: ast.FunctionDef, sources: Set[str]) -> set[str]:
    names: set[str] = set()
    for _ in range(3):  # names that are assigned from each other
        for each in ast.walk(function):
            if isinstance(each, ast.Assign) and _is_declared(each.value, names, sources):
                targets = (found for target in each.targets for found in ast.walk(target))
                names |= {found.id for found in targets if isinstance(found, ast.Name)}
    return names


def _sizes(node: ast.AST) -> list[ast.expr]:
    """Return the sizes of the list that an expression builds."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BUILDERS:
        return node.args
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [node.right] if isinstance(node.left, ast.List | ast.Tuple) else []
    return []


def _functions_without_limit() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in sorted(ROOT.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            calls = (each for each in ast.walk(function) if isinstance(each, ast.Call))
            if isinstance(function, ast.FunctionDef) and not any(_name(each) in LIMITS for each in calls):
                yield path.relative_to(ROOT).as_posix(), function


def _returns_declared(function: ast.FunctionDef, sources: Set[str]) -> bool:
    if function.returns is None or not any(each in ast.unparse(function.returns) for each in RESULTS):
        return False
    names = _declared_names(function, sources)
    results = (each.value for each in ast.walk(function) if isinstance(each, ast.Return))
    return any(each is not None and _is_declared(each, names, sources) for each in results)


def _unlimited() -> Iterator[str]:
    functions = [*_functions_without_limit()]
    sources: set[str] = {*SOURCES}
    for _ in range(3):  # functions that call each other
        sources |= {each.name for _, each in functions if _returns_declared(each, sources)}
    for path, function in functions:
        names = _declared_names(function, sources)
        sizes = (size for each in ast.walk(function) for size in _sizes(each))
        if any(_is_declared(size, names, sources) for size in sizes):
            yield f"{path} {function.name}"


def test_lists_of_declared_sizes_have_limits() -> None:
    found = set(_unlimited())
    assert found <= REVIEWED.keys(), "call out.require_elements before the list is built, or add a reason"
    assert found >= REVIEWED.keys() - {"ops/math/einsum.py _take_diagonals"}, "remove the entry"


@pytest.mark.parametrize("dims", [[2**40], [0, 2**40], [2**40, 0], [2**31, 2**31]])
def test_refuses_huge_zero_points(dims: list[int]) -> None:
    nodes = [helper.make_node("QuantizeLinear", ["x", "s"], ["y"], axis=0, output_dtype=TensorProto.INT8)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    scale = helper.make_tensor_value_info("s", TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, "g", [x, scale], [helper.make_tensor_value_info("y", 3, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with pytest.raises(opshift.ConversionRefused):
        opshift.convert_version(model, 13)


def test_refuses_huge_pads() -> None:
    nodes = [helper.make_node("Pad", ["x", "pads"], ["y"], mode="wrap")]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    pads = helper.make_tensor_value_info("pads", TensorProto.INT64, [2**40])
    graph = helper.make_graph(nodes, "g", [x, pads], [helper.make_tensor_value_info("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    with pytest.raises(opshift.ConversionRefused, match="dimensions"):
        opshift.convert_version(model, 13)


def test_refuses_huge_numbers_of_heads() -> None:
    attributes = {"q_num_heads": 2**31, "kv_num_heads": 1}
    nodes = [helper.make_node("Attention", ["q", "k", "v"], ["y"], **attributes)]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 2**33]) for name in "qkv"]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    with pytest.raises(opshift.ConversionRefused, match="elements of a constant"):
        opshift.convert_version(model, 17)
