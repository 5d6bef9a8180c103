"""Deprecated alias: import `adapter` from `opshift.adapters`."""

import warnings

from opshift.adapters.core.adapter_table import adapter as adapter

warnings.warn(
    "opshift.adapters.table is deprecated and goes with the next release: import from opshift.adapters",
    DeprecationWarning,
    stacklevel=2,
)
