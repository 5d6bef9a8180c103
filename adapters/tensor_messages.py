"""The values of a TensorProto that an attribute holds."""

from __future__ import annotations

from typing import Any

from opshift.adapters.node import Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.tensors import read_tensor


def tensor_of(message: Any) -> Tensor:
    """What a TensorProto holds; a `Tensor`, which an adapter wrote, is that already.

    Raises:
        CannotConvert: its values are of a type that is not read, or are not there.
    """
    found = message if isinstance(message, Tensor) else read_tensor(message)
    if found is None:
        raise CannotConvert("a tensor among its attributes does not hold its values, or is of a rare type")
    return found
