"""Content of the pages about opsets."""

from collections.abc import Sequence
from dataclasses import dataclass

from opshift.catalogue.operator_views import OperatorView, VersionView
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry


@dataclass(frozen=True)
class OpsetView:
    """Opset of a domain, compared with the previous opset."""

    domain: str
    opset: int
    release: str
    """The first ONNX release with the opset; empty for other domains."""
    ir_version: int
    """The IR version of this release; 0 for other domains."""
    versions: Sequence[OperatorVersion]
    """The versions in effect."""
    new: Sequence[VersionView]
    """First versions of operators."""
    changed: Sequence[VersionView]
    """Later versions of operators."""
    removed: Sequence[VersionView]
    """Last versions of operators that the opset lacks."""

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        lists = {"new": self.new, "changed": self.changed, "removed": self.removed}
        return {
            "domain": self.domain,
            "opset": self.opset,
            "release": self.release,
            "ir_version": self.ir_version,
            **{name: [str(each.version.id) for each in views] for name, views in lists.items()},
            "operators": [str(each.id) for each in self.versions],
        }


def opset_views(domain: str, operators: Sequence[OperatorView], registry: Registry) -> list[OpsetView]:
    """Return all opsets of a domain, oldest first."""
    views = [view for each in operators for view in each.versions]
    return [
        OpsetView(
            domain,
            opset,
            release_with(domain, opset, registry),
            registry.releases.ir_version_for({domain: opset}),
            [version for each in operators if (version := each.operator.at(opset))],
            [each for each in views if each.version.since_version == opset and not each.entry.before],
            [each for each in views if each.version.since_version == opset and each.entry.before],
            [each for each in views if each.version.removal and each.version.removal.removed_in == opset],
        )
        for opset in range(1, registry.newest_opset(domain) + 1)
    ]


def release_with(domain: str, opset: int, registry: Registry) -> str:
    """Return the name of the first ONNX release with an opset; empty if there is none."""
    found = registry.releases.first_release_with(domain, opset)
    names = (f"ONNX {name}" for name, each in registry.releases.onnx.items() if each is found)
    return next(names, "")
