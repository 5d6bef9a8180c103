"""Products of matrices and tensors, with floats and quantized numbers."""

from __future__ import annotations

from typing import Any

from random_graphs.draft import Choice, Draft, TensorSpec

EQUATIONS: dict[str, tuple[tuple[int, ...], ...]] = {
    "ij,jk->ik": ((2, 3), (3, 2)),
    "ij->ji": ((2, 3),),
    "ii->i": ((3, 3),),
    "ij->": ((2, 3),),
    "i,i": ((3,), (3,)),
    "i,j->ij": ((3,), (2,)),
    "...ij,...jk->...ik": ((2, 1, 2), (2, 2, 3)),
    "...ii->...": ((2, 3, 3),),
    "bij,bjk->bik": ((2, 2, 3), (2, 3, 1)),
    "ijk->kj": ((2, 3, 2),),
    "ab,bc,cd->ad": ((2, 3), (3, 2), (2, 2)),
    "ba,ca": ((2, 3), (1, 3)),
}
"""Equations of Einsum with matching operand shapes."""


def equation(n: Draft) -> str:
    """Draw the equation of an Einsum."""
    found: str = n.fact("equation", lambda: n.one_of(*EQUATIONS))
    return found


def factor(n: Draft) -> TensorSpec:
    """Choose a second operand that matches the first."""
    size = n.shape[-1]
    if n.rank == 1:
        return TensorSpec(n.one_of((size,), (size, 2), (2, size, 1)))
    columns = n.number(1, 3)
    return TensorSpec(
        n.one_of((size,), (size, columns), (*n.shape[:-2], size, columns), (2, *(1,) * (n.rank - 2), size, 2))
    )


def _is_transposed(n: Draft, name: str) -> int:
    found: int = n.fact(name, lambda: n.one_of(0, 0, 1))
    return found


def gemm_b(n: Draft) -> TensorSpec:
    inner = n.shape[0 if _is_transposed(n, "transA") else 1]
    columns = n.fact("columns", lambda: n.number(1, 3))
    return TensorSpec((columns, inner) if _is_transposed(n, "transB") else (inner, columns))


def gemm_c(n: Draft) -> Any:
    rows, columns = n.shape[1 if _is_transposed(n, "transA") else 0], n.facts["columns"]
    shape = TensorSpec(n.one_of((rows, columns), (columns,), (1, columns), (rows, 1), (), (1,)))
    return shape if n.since < 11 else n.one_of(None, shape)


def zero(n: Draft) -> Any:
    """Draw no zero point, zero, or another number."""
    return n.one_of(None, 0, 3)


CHOICES: dict[str, Choice] = {
    "Einsum.Inputs": lambda n: [TensorSpec(shape) for shape in EQUATIONS[equation(n)]],
    "Einsum.equation": equation,
    "matmul.B": factor,
    "Gemm.B": gemm_b,
    "Gemm.C": gemm_c,
    "Gemm.transA": lambda n: n.facts["transA"],
    "Gemm.transB": lambda n: n.facts["transB"],
    "MatMulInteger.a_zero_point": zero,
    "MatMulInteger.b_zero_point": zero,
    "QLinearMatMul.b": factor,
    "Det.X": lambda n: TensorSpec(n.one_of((2, 2), (3, 3), (2, 1, 1), (2, 3, 3))),
} | {
    f"{operator}.{side}_{part}": choice
    for operator in ("QLinearMatMul", "QLinearConv")
    for side in "abxwy"
    for part, choice in (
        ("scale", lambda n: n.one_of(0.5, 0.25, 1.0)),
        ("zero_point", lambda n: n.one_of(0, 2, 100)),
    )
}
RANKS: dict[str, tuple[int, int]] = {
    "matmul": (1, 4), "quantized_matmul": (2, 3), "Gemm": (2, 2),
}  # fmt: skip
