"""The operators of com.acme in numpy."""

from typing import Any

import numpy as np
import numpy.typing as npt

from opshift import reference

Array = npt.NDArray[Any]


@reference("Scale", 1, domain="com.acme")
def scale_1(x: Array, *, factor: float) -> Array:
    """Multiply by the attribute."""
    return x * factor


@reference("Scale", 2, domain="com.acme")
def scale_2(x: Array, factor: Array) -> Array:
    """Multiply by an input with one element."""
    return np.asarray(x * factor.item())


@reference("Thin", 2, domain="com.acme")
def thin(x: Array, *, stride: int) -> Array:
    """Keep every row with an index that is a multiple of the stride."""
    return x[::stride]
