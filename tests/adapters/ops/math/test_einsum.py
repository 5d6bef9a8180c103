"""Expansion of Einsum below opset 12."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build

RANDOM = np.random.default_rng(0)


def _random(*shape: int, dtype: type = np.float32) -> Array:
    return RANDOM.standard_normal(shape).astype(dtype)


EQUATIONS = [
    pytest.param("ij,jk->ik", [(2, 3), (3, 4)], id="matrix product"),
    pytest.param("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)], id="batch matrix product"),
    pytest.param("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)], id="attention"),
    pytest.param("bqhd,bkhd->bhqk", [(2, 4, 3, 5), (2, 6, 3, 5)], id="attention with an inner heads axis"),
    pytest.param("abc,cda->bd", [(2, 3, 4), (4, 5, 2)], id="two labels summed"),
    pytest.param("abcd,efcd->feba", [(2, 3, 4, 5), (6, 2, 4, 5)], id="several labels of each role"),
    pytest.param("i,j->ij", [(2,), (3,)], id="outer product"),
    pytest.param("i,i", [(3,), (3,)], id="inner product, implicit output"),
    pytest.param("ij,ij->ij", [(2, 3), (2, 3)], id="elementwise product"),
    pytest.param("ij->ji", [(2, 3)], id="transposed"),
    pytest.param("ba", [(2, 3)], id="implicit output in alphabetical order"),
    pytest.param("ij->", [(2, 3)], id="all summed"),
    pytest.param("ij->i", [(2, 3)], id="one label summed"),
    pytest.param("ii->i", [(3, 3)], id="the diagonal"),
    pytest.param("ii", [(3, 3)], id="the trace"),
    pytest.param("iji->j", [(3, 2, 3)], id="diagonal around another label"),
    pytest.param("iii->i", [(3, 3, 3)], id="the diagonal of a cube"),
    pytest.param("...ii->...i", [(2, 4, 3, 3)], id="the diagonals of a batch"),
    pytest.param("...ij,...jk->...ik", [(4, 1, 2, 3), (5, 3, 2)], id="broadcast batches"),
    pytest.param("i...,j...->...ij", [(2, 3), (4, 3)], id="an ellipsis at the end"),
    pytest.param("...i,...i->...", [(2, 3), (3,)], id="empty ellipsis"),
    pytest.param("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], id="three operands"),
    pytest.param("i,ij,j", [(2,), (2, 3), (3,)], id="a bilinear form"),
    pytest.param("ab,b,cb->ac", [(2, 3), (3,), (4, 3)], id="label in three operands"),
    pytest.param("ij,k->j", [(2, 3), (4,)], id="labels summed before the product"),
    pytest.param(" i j , j k -> i k ", [(2, 3), (3, 2)], id="blanks"),
]


@pytest.mark.parametrize("target", [7, 11])
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_expands_einsum(equation: str, shapes: list[tuple[int, ...]], target: int) -> None:
    feeds: dict[str, Array] = {f"x{index}": _random(*shape) for index, shape in enumerate(shapes)}
    node = helper.make_node("Einsum", list(feeds), ["y"], name="node", equation=equation)
    expected = [np.einsum(equation.replace(" ", ""), *feeds.values())]
    convert_and_check(build([node], feeds, ["y"], 12), target, feeds, expected)


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_expands_einsum_of_unknown_sizes(equation: str, shapes: list[tuple[int, ...]]) -> None:
    feeds: dict[str, Array] = {f"x{index}": _random(*shape) for index, shape in enumerate(shapes)}
    node = helper.make_node("Einsum", list(feeds), ["y"], name="node", equation=equation)
    model = build([node], feeds, ["y"], 12)
    for value in model.graph.input:
        for index, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{index}"
    if "ii" in equation or "iji" in equation:
        assert refusal_of(model, 11).reason.endswith("is repeated, and the size of its dimensions is unknown")
        return
    convert_and_check(model, 9, feeds, [np.einsum(equation.replace(" ", ""), *feeds.values())])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS[:5])
def test_expands_einsum_of_other_types(equation: str, shapes: list[tuple[int, ...]], dtype: type) -> None:
    feeds: dict[str, Array] = {
        f"x{index}": RANDOM.integers(-9, 9, shape).astype(dtype) for index, shape in enumerate(shapes)
    }
    node = helper.make_node("Einsum", list(feeds), ["y"], name="node", equation=equation)
    outputs = {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}
    convert_and_check(build([node], feeds, outputs, 12), 7, feeds, [np.einsum(equation, *feeds.values())])
