"""Read tensors held by attributes."""

from __future__ import annotations

from typing import Any

from opshift.adapters.node import Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.tensors import read_tensor


def tensor_of(message: Any) -> Tensor:
    """Return the value of a tensor attribute: a TensorProto of the model, or an adapter's `Tensor`.

    Raises:
        CannotConvert: the data are external, inconsistent with the dimensions, or of an unsupported element
            type.
    """
    found = message if isinstance(message, Tensor) else read_tensor(message)
    if found is None:
        raise CannotConvert(
            "cannot read a tensor attribute: external or invalid data, or an unsupported element type"
        )
    return found
