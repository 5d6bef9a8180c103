"""Deprecated alias: import `Node` and `Tensor` from `opshift.adapters`."""

import warnings

from opshift.model.node import Node as Node
from opshift.model.node import Tensor as Tensor

warnings.warn(
    "opshift.adapters.node is deprecated and will be removed: import from opshift.adapters",
    DeprecationWarning,
    stacklevel=2,
)
