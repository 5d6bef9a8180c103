"""Deprecated alias: import `adapter` from `opshift.adapters`."""

import warnings

from opshift.adapters.core.adapter_table import adapter as adapter

warnings.warn(
    "opshift.adapters.table is deprecated and will be removed: import from opshift.adapters",
    DeprecationWarning,
    stacklevel=2,
)
