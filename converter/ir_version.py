"""The IR version that a model needs for its opsets."""

from __future__ import annotations

from collections.abc import Mapping

from opshift.registry.releases import Releases

INITIALIZERS_STAND_ALONE = 4
"""From this IR version on an initializer need not be a graph input."""


def ir_version_for(current: int, raised: Mapping[str, int], releases: Releases) -> int:
    """The IR version after raising domains to these opsets: never lower than it is.

    An opset needs the IR version of the first ONNX release that had it (Versioning, "released versions").
    """
    needed = (releases.first_with(domain, opset) for domain, opset in raised.items())
    return max([current, *(release.ir_version for release in needed if release)])
