"""Deprecated alias: import `CannotConvert` from `opshift.adapters`."""

import warnings

from opshift.model.errors import CannotConvert as CannotConvert

warnings.warn(
    "opshift.adapters.refusal is deprecated and will be removed: import from opshift.adapters",
    DeprecationWarning,
    stacklevel=2,
)
