"""Operations on symbols: results are equal only if they are equal for all sizes."""

import random
from collections import defaultdict
from collections.abc import Callable

import pytest

from opshift.registry.shapes.sizes import (
    ceil_quotient,
    floor_quotient,
    is_limited,
    is_symbolic,
    minimum,
    symbol_named,
)

Expression = Callable[[int, int], int]
PAIRS = [(n, m) for n in range(13) for m in (0, 1, 2, 5, 6, 9)]

EQUAL: dict[str, tuple[Expression, Expression]] = {
    "product": (lambda n, m: floor_quotient(6 * n, 3), lambda n, m: 2 * n),
    "product plus a number": (lambda n, m: floor_quotient(6 * n + 5, 3), lambda n, m: 2 * n + 1),
    "common divisor": (lambda n, m: floor_quotient(6 * n + 5, 4), lambda n, m: floor_quotient(3 * n + 2, 2)),
    "number added before and after": (
        lambda n, m: floor_quotient(n - 1, 2) + 1,
        lambda n, m: floor_quotient(n + 3, 2) - 1,
    ),
    "sum of sizes": (
        lambda n, m: floor_quotient(n + m + 7, 3),
        lambda n, m: floor_quotient(m + n + 1, 3) + 2,
    ),
    "quotient of a quotient": (
        lambda n, m: floor_quotient(floor_quotient(n + 1, 2) + 1, 3),
        lambda n, m: floor_quotient(n + 3, 6),
    ),
    "rounding up": (lambda n, m: ceil_quotient(n, 4), lambda n, m: floor_quotient(n - 1, 4) + 1),
    "minimum": (lambda n, m: minimum(n, 5), lambda n, m: minimum(5, n)),
    "minimum of 0": (lambda n, m: minimum(n, 0), lambda n, m: 0),
}


@pytest.mark.parametrize(("first", "second"), EQUAL.values(), ids=EQUAL)
def test_recognizes_equal_results(first: Expression, second: Expression) -> None:
    assert all(first(n, m) == second(n, m) for n, m in PAIRS)
    assert first(symbol_named("n"), symbol_named("m")) == second(symbol_named("n"), symbol_named("m"))


def random_expression(depth: int) -> tuple[Expression, str]:
    """Return a function of two sizes, and its text."""
    if depth == 0:
        return random.choice([(lambda n, m: n, "n"), (lambda n, m: m, "m")])
    (first, text), number = random_expression(depth - 1), random.randint(1, 4)
    if random.random() < 0.3:
        second, other = random_expression(depth - 1)
        return lambda n, m: first(n, m) + second(n, m), f"({text} + {other})"
    return random.choice(
        [
            (lambda n, m: first(n, m) + number, f"({text} + {number})"),
            (lambda n, m: first(n, m) * number, f"{text} * {number}"),
            (lambda n, m: floor_quotient(first(n, m), number), f"floor({text} / {number})"),
            (lambda n, m: ceil_quotient(first(n, m), number), f"ceil({text} / {number})"),
            (lambda n, m: minimum(first(n, m), number), f"min({text}, {number})"),
        ]
    )


@pytest.mark.parametrize("name", ["n", "batch", "width", "T"])
def test_equal_results_are_equal_for_all_sizes(name: str) -> None:
    random.seed(0)
    groups: dict[int, list[tuple[Expression, str]]] = defaultdict(list)
    for _ in range(2000):
        expression = random_expression(random.randint(1, 4))
        groups[expression[0](symbol_named(name), symbol_named("m"))].append(expression)
    for each in groups.values():
        texts = {tuple(size(n, m) for n, m in PAIRS): text for size, text in each}
        assert len(texts) == 1, texts.values()
    assert 100 < len(groups) < 1500


def test_limits_are_symbols() -> None:
    n, m = symbol_named("n"), symbol_named("m")
    assert is_limited(minimum(n, 5), n)
    assert not is_limited(minimum(n, 5), m)
    assert not is_limited(minimum(n, m), n)
    assert not is_limited(n, n)


def test_long_chains_of_quotients_are_symbols() -> None:
    size: int = symbol_named("n")
    for _ in range(300):
        size = floor_quotient(size - 1, 2**62 - 1) + 1
    assert is_symbolic(size)
