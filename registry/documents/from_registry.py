"""Operator sets of a registry's domains."""

from dataclasses import replace

from opshift.model.operator_ids import canonical_domain
from opshift.registry.documents.document import OperatorSet, read_header
from opshift.registry.ir_versions import ir_versions
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import Registry


def operator_set(
    registry: Registry,
    domain: str,
    opset_version: int | None = None,
    *,
    prerelease: str = "",
    build_metadata: str = "",
    doc_string: str = "",
) -> OperatorSet:
    """Return a domain as of an opset (the newest by default), without later versions and removals.

    Args:
        registry: the definitions.
        domain: the domain.
        opset_version: the opset.
        prerelease: pre-release part of the semantic version of the IR, without `-`.
        build_metadata: build metadata of the semantic version of the IR, without `+`.
        doc_string: text that describes the set.

    Raises:
        UnknownDomain, UnknownOpset: the registry lacks the domain or its opset.
        DocumentError: a part of the semantic version is invalid.
    """
    domain = canonical_domain(domain)
    opset = registry.newest_opset(domain) if opset_version is None else opset_version
    registry.require_opset(opset, domain)
    cut = (_truncate(operator, opset) for operator in registry.operators(domain))
    header = read_header(
        {
            "domain": domain,
            "opset_version": opset,
            # no release of ONNX has a private domain
            "ir_version": registry.releases.ir_version_for({domain: opset}) or ir_versions().newest,
            "ir_version_prerelease": prerelease,
            "ir_build_metadata": build_metadata,
            "doc_string": doc_string,
        }
    )
    return OperatorSet(domain, opset, tuple(operator for operator in cut if operator), header)


def _truncate(operator: Operator, opset: int) -> Operator | None:
    versions = [version for version in operator.versions if version.since_version <= opset]
    kept = tuple(_without_later_removal(version, opset) for version in versions)
    return replace(operator, versions=kept) if kept else None


def _without_later_removal(version: OperatorVersion, opset: int) -> OperatorVersion:
    is_later = version.removal is not None and version.removal.removed_in > opset
    return replace(version, removal=None) if is_later else version
