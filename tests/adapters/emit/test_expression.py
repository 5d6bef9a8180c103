"""Formulas, folds and known shapes, emitted through a rewriter without a model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest

from opshift.adapters.core.rewriter import Rewriter
from opshift.adapters.emit.expression import Expression, fold
from opshift.adapters.emit.shapes import broadcast_shape
from opshift.adapters.emit.subgraphs import SubgraphBuilder
from opshift.model.node import Tensor
from opshift.registry.registry import default_registry
from opshift.registry.steps import Allow

SHAPES: dict[str, tuple[int | None, ...]] = {
    "image": (None, 3, 5),
    "column": (3, 1),
    "row": (1, 5),
    "scalar": (),
}


class _Model:
    """Facts and workspace with the shapes above and constants named by their values."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def element_type(self, name: str) -> str | None:
        return "float"

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        return SHAPES.get(name)

    def rank(self, name: str) -> int | None:
        shape = self.shape(name)
        return None if shape is None else len(shape)

    def comparable_shapes(self, names: Sequence[str]) -> tuple[tuple[int | None, ...] | None, ...]:
        return tuple(map(self.shape, names))

    def listed_sizes(self, names: Sequence[str]) -> None:
        return None

    def rank_so_far(self, name: str) -> int | None:
        return self.rank(name)

    def is_visible(self, name: str) -> bool:
        return False

    def nested_shape(self, graph: object, name: str) -> tuple[int | None, ...] | None:
        return None

    def constant(self, name: str) -> Tensor | None:
        return None

    def is_nonnegative(self, name: str) -> bool:
        return False

    def nonzero_elements(self, name: str) -> None:
        return None

    def uniform_element(self, name: str) -> None:
        return None

    def declare_shape(self, name: str, rank: int | None = None) -> None:
        pass

    def is_used(self, name: str) -> bool:
        return True

    def fresh(self, hint: str) -> str:
        return f"{hint}{next(self._numbers)}"

    def add_constant(self, tensor: Tensor) -> str:
        return str(tensor.values)

    def allow(self, kind: Allow, reason: str) -> bool:
        return False


@pytest.fixture
def out() -> Rewriter:
    source = default_registry().get_schema("Add", 13)
    model = _Model()
    return Rewriter(model, model, source, None, 12, 12)


def _nodes(out: Rewriter) -> list[str]:
    return [f"{each.node.op_type}({', '.join(each.node.inputs)})" for each in out.emitted]


def test_expression_emits_one_node_per_operator(out: Rewriter) -> None:
    x = Expression("x", "float", out)
    result = 1 / (2 - -abs(x) * x) + x.constant(3)
    assert _nodes(out) == [
        "Abs(x)",
        "Neg(abs1)",
        "Mul(neg2, x)",
        "Sub((2.0,), mul3)",
        "Div((1.0,), sub4)",
        "Add(div5, (3.0,))",
    ]
    assert result.name == "add6"


def test_expression_emits_numbers_on_both_sides_as_constants(out: Rewriter) -> None:
    x = Expression("x", "float", out)
    _ = (1 + x - 2) / 4
    assert _nodes(out) == ["Add((1.0,), x)", "Sub(add1, (2.0,))", "Div(sub2, (4.0,))"]


def test_fold_combines_lazily(out: Rewriter) -> None:
    total = fold("Add", (out.emit("Abs", [name]) for name in ("a", "b")), out)
    assert (total, _nodes(out)) == ("add3", ["Abs(a)", "Abs(b)", "Add(abs1, abs2)"])
    assert fold("Add", [], out) == ""


def test_view_emits_for_another_opset_into_the_same_nodes(out: Rewriter) -> None:
    view = out.for_opset(9)
    view.emit("Abs", ["a"])
    view.cast("a", "int64", opset=6)
    SubgraphBuilder(view)
    view.for_opset(None).emit("Neg", ["a"])
    out.emit("Exp", ["a"])
    assert [each.opset for each in out.emitted] == [9, 6, 12, 12]
    assert SubgraphBuilder(view).emit_opset == 9


def test_view_emits_for_another_domain(out: Rewriter) -> None:
    view = out.for_opset(3, "ai.onnx.ml")
    for each in (view, SubgraphBuilder(view), view.for_opset(2)):
        each.emit("Scaler", ["a"])
        assert each.emitted[-1].node.domain == "ai.onnx.ml"
    out.emit("Exp", ["a"])
    assert [(each.opset, each.node.domain) for each in out.emitted] == [
        (3, "ai.onnx.ml"), (2, "ai.onnx.ml"), (12, ""),
    ]  # fmt: skip


@pytest.mark.parametrize(("axis", "size"), [(0, None), (1, 3), (-1, 5), (3, None), (-4, None)])
def test_known_dimension(out: Rewriter, axis: int, size: int | None) -> None:
    assert out.known_dimension("image", axis) == size


def test_known_shape_has_no_unknown_dimension(out: Rewriter) -> None:
    assert [out.known_shape(name) for name in ("image", "column", "scalar", "missing")] == [
        None,
        (3, 1),
        (),
        None,
    ]


def test_broadcast_shape(out: Rewriter) -> None:
    assert broadcast_shape(["column", "row", "scalar"], out) == (3, 5)
    assert broadcast_shape(["column", "image"], out) is None
