"""Deprecated alias: import `Rewriter` from `opshift.adapters`."""

import warnings

from opshift.adapters.core.rewriter import Rewriter as Rewriter

warnings.warn(
    "opshift.adapters.rewriter is deprecated and will be removed: import from opshift.adapters",
    DeprecationWarning,
    stacklevel=2,
)
