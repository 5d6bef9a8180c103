"""Opsets to which a model cannot be converted."""

from collections.abc import Hashable, Mapping

from opshift.model.operator_ids import DEFAULT_DOMAIN


class RefusedOpsets:
    """Opsets to which a model cannot be converted: each refused opset, and all opsets beyond it.

    A conversion to a farther opset of the default domain includes all steps to a nearer opset in the same
    direction, so a step that is refused refuses both conversions.
    """

    def __init__(self, source: Mapping[str, int]) -> None:
        """`source` contains the opset imports of the model by domain."""
        self._source = source.get(DEFAULT_DOMAIN, 0)
        self._refused: dict[Hashable, int] = {}

    def add(self, opsets: Mapping[str, int]) -> None:
        """Add target opsets, by domain, whose conversion is refused."""
        key, distance = self._direction(opsets)
        self._refused[key] = min(distance, self._refused.get(key, distance))

    def __contains__(self, opsets: Mapping[str, int]) -> bool:
        """Return whether the conversion to target opsets, by domain, is refused."""
        key, distance = self._direction(opsets)
        return key in self._refused and distance >= self._refused[key]

    def _direction(self, opsets: Mapping[str, int]) -> tuple[Hashable, int]:
        """Return a key (direction and opsets of other domains), and the number of opsets to cross."""
        distance = opsets.get(DEFAULT_DOMAIN, 0) - self._source
        others = tuple(sorted(each for each in opsets.items() if each[0] != DEFAULT_DOMAIN))
        return (distance > 0, others), abs(distance)
