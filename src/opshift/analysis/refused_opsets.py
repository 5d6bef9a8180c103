"""Opsets at which conversions of a model are refused."""

from collections.abc import Hashable, Mapping

from opshift.model.operator_ids import DEFAULT_DOMAIN


class RefusedOpsets:
    """Opsets to which a model cannot be converted: those that were refused, and all farther ones.

    A conversion takes all steps of those to nearer opsets of the default domain, and is refused where they
    are.
    """

    def __init__(self, source: Mapping[str, int]) -> None:
        """`source` are the opsets of the model by domain."""
        self._source = source.get(DEFAULT_DOMAIN, 0)
        self._refused: dict[Hashable, int] = {}

    def add(self, opsets: Mapping[str, int]) -> None:
        """Add opsets by domain to which the conversion is refused."""
        key, distance = self._direction(opsets)
        self._refused[key] = min(distance, self._refused.get(key, distance))

    def __contains__(self, opsets: Mapping[str, int]) -> bool:
        """Return whether the conversion to opsets by domain is refused."""
        key, distance = self._direction(opsets)
        return key in self._refused and distance >= self._refused[key]

    def _direction(self, opsets: Mapping[str, int]) -> tuple[Hashable, int]:
        """Return what conversions with the same steps have in common, and the number of opsets to cross."""
        distance = opsets.get(DEFAULT_DOMAIN, 0) - self._source
        others = tuple(sorted(each for each in opsets.items() if each[0] != DEFAULT_DOMAIN))
        return (distance > 0, others), abs(distance)
