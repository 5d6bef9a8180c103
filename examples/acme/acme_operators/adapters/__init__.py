"""Adapters of com.acme."""

from acme_operators.adapters import scale as scale
from acme_operators.adapters import thin as thin
