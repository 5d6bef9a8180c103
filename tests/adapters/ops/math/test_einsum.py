"""Expansion of Einsum below opset 12."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, Feeds, build

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
    pytest.param("ij,jk->ik", [(2, 1), (3, 4)], id="size 1 in the first operand"),
    pytest.param("ij,jk->ik", [(2, 3), (1, 4)], id="size 1 in the second operand"),
    pytest.param("ab,ab->", [(1, 6), (6, 1)], id="size 1 in either operand"),
    pytest.param("abk,abk->k", [(1, 3, 2), (3, 1, 2)], id="size 1 in either operand and a batch"),
    pytest.param("abck,abk->abc", [(1, 3, 2, 2), (2, 3, 2)], id="batch of size 1"),
    pytest.param("aekm,aekm,kmc->aec", [(3, 2, 2, 2), (1, 2, 2, 2), (2, 2, 2)], id="row of size 1"),
    pytest.param("aekm,aekm,kmc->aec", [(3, 2, 2, 2), (3, 1, 2, 2), (2, 2, 6)], id="stack of size 1"),
    pytest.param("ab,ab,ab->b", [(3, 2), (1, 2), (1, 2)], id="size 1 in two of three operands"),
    pytest.param("ab,ab,ab->", [(1, 2), (3, 1), (3, 2)], id="all summed, after size 1"),
    pytest.param("...ab,...ab,ab->...", [(2, 1, 3), (1, 4, 3), (4, 1)], id="size 1 and an ellipsis"),
]


def _random_equation(seed: int) -> tuple[str, list[tuple[int, ...]]]:
    """Return an equation, and shapes in which each letter has one size or 1."""
    random = np.random.default_rng(seed)
    sizes = dict(zip("abcd", random.choice([0, 1, 2, 3], 4, p=[0.1, 0.1, 0.4, 0.4]).tolist(), strict=True))
    terms = [random.permutation(list(sizes))[: random.integers(1, 5)] for _ in range(random.integers(2, 4))]
    shapes = [
        tuple(int(random.choice([sizes[letter], 1], p=[0.7, 0.3])) for letter in term) for term in terms
    ]
    used = sorted({letter for term in terms for letter in term})
    result = random.permutation(used)[: random.integers(0, len(used) + 1)]
    return ",".join(map("".join, terms)) + "->" + "".join(result), shapes


def _model(equation: str, shapes: list[tuple[int, ...]], unknown: str) -> tuple[onnx.ModelProto, Feeds]:
    """Return a model and its inputs x0, x1 and so on; operands in `unknown` have different symbolic sizes."""
    feeds: dict[str, Array] = {f"x{index}": _random(*shape) for index, shape in enumerate(shapes)}
    node = helper.make_node("Einsum", list(feeds), ["y"], name="node", equation=equation)
    model = build([node], feeds, ["y"], 12)
    for value in model.graph.input:
        if value.name[1:] in unknown:
            for index, dim in enumerate(value.type.tensor_type.shape.dim):
                dim.dim_param = f"{value.name}_{index}"
    return model, feeds


@pytest.mark.parametrize("target", [7, 11])
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_expands_einsum(equation: str, shapes: list[tuple[int, ...]], target: int) -> None:
    model, feeds = _model(equation, shapes, "")
    expected = [np.einsum(equation.replace(" ", ""), *feeds.values())]
    convert_and_check(model, target, feeds, expected)


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_expands_einsum_of_unknown_sizes(equation: str, shapes: list[tuple[int, ...]]) -> None:
    model, feeds = _model(equation, shapes, "012")
    if "ii" in equation or "iji" in equation:
        assert refusal_of(model, 11).reason.endswith("is repeated, and the size of its dimensions is unknown")
        return
    convert_and_check(model, 9, feeds, [np.einsum(equation.replace(" ", ""), *feeds.values())])


def test_expands_einsum_of_an_empty_batch_and_a_batch_of_size_1() -> None:
    model, feeds = _model("abik,abkj->abij", [(2, 0, 3, 4), (2, 1, 4, 5)], "")
    convert_and_check(model, 11, feeds, [np.zeros((2, 0, 3, 5), np.float32)])


@pytest.mark.parametrize("unknown", ["", "0", "1", "012"])
@pytest.mark.parametrize("seed", range(16))
def test_expands_random_equations(seed: int, unknown: str) -> None:
    equation, shapes = _random_equation(seed)
    model, feeds = _model(equation, shapes, unknown)
    convert_and_check(model, 9, feeds, [np.einsum(equation, *feeds.values())])


@pytest.mark.parametrize(
    ("first", "second", "operators"),
    [
        pytest.param([2, 3], [3, 4], ["MatMul"], id="known"),
        pytest.param(["N", "K"], ["K", "M"], ["MatMul"], id="equal symbols"),
        pytest.param([2, 3], ["K", 4], ["Expand", "MatMul"], id="only the second may have size 1"),
        pytest.param(["N", "K"], [3, "M"], ["Expand", "MatMul"], id="only the first may have size 1"),
    ],
)
def test_expands_only_sizes_that_may_be_1(first: list[Any], second: list[Any], operators: list[str]) -> None:
    model, feeds = _model("ij,jk->ik", [(2, 3), (3, 4)], "")
    for value, shape in zip(model.graph.input, (first, second), strict=True):
        value.CopyFrom(helper.make_tensor_value_info(value.name, onnx.TensorProto.FLOAT, shape))
    result = convert_and_check(model, 11, feeds)
    assert [node.op_type for node in result.graph.node] == operators


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS[:5])
def test_expands_einsum_of_other_types(equation: str, shapes: list[tuple[int, ...]], dtype: type) -> None:
    feeds: dict[str, Array] = {
        f"x{index}": RANDOM.integers(-9, 9, shape).astype(dtype) for index, shape in enumerate(shapes)
    }
    node = helper.make_node("Einsum", list(feeds), ["y"], name="node", equation=equation)
    outputs = {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}
    convert_and_check(build([node], feeds, outputs, 12), 7, feeds, [np.einsum(equation, *feeds.values())])


@pytest.mark.parametrize(
    ("equation", "reason"),
    [
        ("i.j->i", "the term 'i.j' does not consist of letters and at most one ellipsis"),
        ("...i...->i", "the term '...i...' does not consist of letters and at most one ellipsis"),
        ("ijk->i", "the term 'ijk' has 3 letters; its input has rank 2"),
        ("i->i", "the term 'i' has 1 letter; its input has rank 2"),
        ("ij,jk->ik", "the equation has 2 terms; the node has 1 input"),
        ("...i->i", "the result omits the dimensions of the ellipsis in '...i'"),
        ("ij->ii", "the result repeats the letter i"),
        ("ij->k", "the letter k of the result is in no term of an input"),
    ],
)
def test_refuses_invalid_equations(equation: str, reason: str) -> None:
    model = build(
        [helper.make_node("Einsum", ["x"], ["y"], equation=equation)], {"x": _random(2, 3)}, ["y"], 12
    )
    assert refusal_of(model, 11).reason == reason
