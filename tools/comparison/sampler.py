"""Random arrays, attributes and choices from which the generators of nodes compose a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

Array = np.ndarray[Any, Any]
Choice = TypeVar("Choice")

FLOATS: dict[str, Any] = {"float": np.float32, "float16": np.float16, "double": np.float64}
"""NumPy types by the name of the element type."""

EMPTY, SPECIAL = 0.08, 0.12
"""Shares of samples with dimensions of 0, and of samples with infinite, NaN, very large or small numbers."""


class Sample(NamedTuple):
    """One node: its inputs (`None` if omitted), types of its outputs (`None` if omitted), and attributes.

    Attributes:
        constants: inputs that kernels require to be constants.
        domain: the domain of the node.
        undefined: by output, which elements the definition leaves open.
        tolerance: of floats, if it is larger than usual.
    """

    op_type: str
    inputs: Sequence[Array | None]
    outputs: Sequence[Any]
    attributes: dict[str, Any]
    constants: frozenset[int] = frozenset()
    domain: str = "com.microsoft"
    undefined: dict[int, Array] | None = None
    tolerance: float = 0.0


class Sampler:
    """Random source of one sample."""

    def __init__(self, seed: Sequence[int]) -> None:
        self.random = np.random.default_rng(seed)
        self.has_empty = self.maybe(EMPTY)
        self.is_special = self.maybe(SPECIAL)

    def maybe(self, share: float = 0.5) -> bool:
        """Return True with a given probability."""
        return bool(self.random.random() < share)

    def pick(self, choices: Sequence[Choice]) -> Choice:
        """Return one of the choices."""
        return choices[int(self.random.integers(len(choices)))]

    def integer(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def distinct(self, choices: Sequence[Choice], least: int, most: int) -> list[Choice]:
        """Return some of the choices in any order, each at most once."""
        count = self.integer(least, min(most, len(choices)))
        return [choices[int(each)] for each in self.random.permutation(len(choices))[:count]]

    def size(self, low: int = 1, high: int = 4) -> int:
        """Draw a dimension, which may be 0 in samples with empty tensors."""
        return 0 if self.has_empty and self.maybe() else self.integer(low, high)

    def shape(self, low: int = 1, high: int = 4) -> tuple[int, ...]:
        """Return a shape of a rank from low to high."""
        return tuple(self.size() for _ in range(self.integer(low, high)))

    def normal(self, shape: Sequence[int], dtype: Any = np.float32, scale: float = 1.0) -> Array:
        """Draw finite numbers around 0."""
        return (self.random.normal(size=tuple(shape)) * scale).astype(dtype)

    def floats(self, shape: Sequence[int], dtype: Any = np.float32, scale: float = 1.0) -> Array:
        """Draw numbers around 0; in samples with special numbers, some are infinite, NaN or very large."""
        array = self.normal(shape, dtype, scale)
        if self.is_special and array.size and self.maybe():
            # Kernels compute float16 in float32, so results differ for numbers whose products exceed float16.
            # Sums close to the largest number depend on the order.
            large, small = 100.0 if dtype == np.float16 else 1e30, float(np.finfo(dtype).tiny)
            values = [np.nan, np.inf, -np.inf, large, -large, small, -0.0, 100]
            places = self.random.integers(array.size, size=self.integer(1, 3))
            array.reshape(-1)[places] = np.array([self.pick(values) for _ in places], dtype)
        return array

    def positive(
        self, shape: Sequence[int], low: float = 0.01, high: float = 0.1, dtype: Any = np.float32
    ) -> Array:
        """Draw positive numbers, such as scales."""
        return self.random.uniform(low, high, tuple(shape)).astype(dtype)

    def integers(
        self, shape: Sequence[int], dtype: Any, low: int | None = None, high: int | None = None
    ) -> Array:
        """Return integers from low to high, both included; by default all of the type."""
        limits = np.iinfo(dtype)
        first, last = limits.min if low is None else low, limits.max if high is None else high
        return self.random.integers(first, last, tuple(shape), dtype, endpoint=True)

    def some(self, **attributes: Any) -> dict[str, Any]:
        """Return a random part of some attributes; the others keep their defaults."""
        return {name: value for name, value in attributes.items() if self.maybe()}

    def flags(self, *names: str) -> dict[str, int]:
        """Draw attributes that are 0 or 1, and omit some of them."""
        return self.some(**{name: self.integer(0, 1) for name in names})

    def epsilon(self) -> dict[str, float]:
        """Draw an `epsilon`, or omit it."""
        return self.some(epsilon=self.pick([1e-12, 1e-6, 1e-5, 1e-3, 0.5]))


Generator = Callable[[Sampler, str], Sample]

GENERATORS: dict[str, Generator] = {}
"""Generators of samples, by operator."""


def generates(*op_types: str) -> Callable[[Generator], Generator]:
    """Register the decorated function as the generator of samples for some operators."""

    def register(function: Generator) -> Generator:
        GENERATORS.update(dict.fromkeys(op_types, function))
        return function

    return register
