"""Target opsets to which a model cannot be converted."""

from collections.abc import Hashable, Mapping

from opshift.model.operator_ids import DEFAULT_DOMAIN


class RefusedOpsets:
    """Target opsets to which a model cannot be converted.

    If the conversion to one opset of the default domain is refused, the conversion to an opset farther away
    in the same direction is refused, too: it includes all steps of the shorter conversion.
    """

    def __init__(self, source: Mapping[str, int]) -> None:
        """`source` maps the domains that the model imports to their opsets."""
        self._source = source.get(DEFAULT_DOMAIN, 0)
        self._refused: dict[Hashable, int] = {}

    def add(self, opsets: Mapping[str, int]) -> None:
        """Record that the conversion to the target opsets, given by domain, is refused."""
        key, distance = self._key_and_distance(opsets)
        self._refused[key] = min(distance, self._refused.get(key, distance))

    def __contains__(self, opsets: Mapping[str, int]) -> bool:
        """Return whether the conversion to `opsets`, or to a nearer opset in this direction, was refused."""
        key, distance = self._key_and_distance(opsets)
        return key in self._refused and distance >= self._refused[key]

    def _key_and_distance(self, opsets: Mapping[str, int]) -> tuple[Hashable, int]:
        """Return a key (direction, opsets of other domains), and the distance in default-domain opsets."""
        distance = opsets.get(DEFAULT_DOMAIN, 0) - self._source
        others = tuple(sorted(each for each in opsets.items() if each[0] != DEFAULT_DOMAIN))
        return (distance > 0, others), abs(distance)
