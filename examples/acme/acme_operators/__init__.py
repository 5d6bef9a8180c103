"""Operators of the domain com.acme."""

from acme_operators import shapes as shapes
