"""The tree (folder) of operator definitions that a proposal extends: its registry, paths and opsets."""

import re
from contextlib import suppress
from pathlib import Path

from opshift.model.errors import OpshiftError, UsageError
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.proposals.content.folder import ProposalFolder
from opshift.registry.definition_files import REVIEWERS
from opshift.registry.errors import UnknownDomain
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry, load_registry

UNRELEASED_REMEDY = "propose an update, which edits the version, or delete its definition from the tree"
"""Remedy in the error for a proposal that deprecates or removes an unreleased version."""


def registry_of_tree(tree: Path | None, domain: str = "") -> Registry:
    """Return a registry of a tree and, if the tree has no `releases.yaml`, of opshift's own definitions.

    For `None`, or an empty or missing folder, return opshift's own definitions.

    Raises:
        UsageError: the folder is empty or missing, and `domain` is a domain of ONNX.
    """
    if tree is None:
        return load_registry()
    is_new = not ((tree / REVIEWERS).exists() or any(tree.glob("*/*.yaml")))
    if is_new and domain and is_standard(domain):
        reason = "contains no operator definitions" if tree.exists() else "does not exist"
        remedy = "correct the path, or write a tree there with `opshift opset copy`"
        raise UsageError(reason, place=str(tree), remedy=remedy)
    return load_registry([] if is_new else [tree])


def registry_for(proposal: Path, tree: Path | None) -> Registry:
    """Return the registry that the proposal in a folder extends, see `registry_of_tree`."""
    domain = ""
    with suppress(OpshiftError):  # the check of the proposal reports an invalid file
        domain = ProposalFolder(proposal).proposal.operator.domain
    return registry_of_tree(tree, domain)


def module_name(domain: str, name: str, opset: int) -> str:
    """Return the file name for code of an operator version: `elu_29.py`, or `com_example_elu_1.py`."""
    snake_case = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    prefix = "" if domain == DEFAULT_DOMAIN else f"{domain}_"
    return re.sub(r"\W", "_", f"{prefix}{snake_case}_{opset}") + ".py"


def reference_file(tree: Path, version: OperatorVersion) -> Path:
    """Return the path, in a tree, of the reference implementation of an operator version."""
    return tree / "references" / module_name(*version.id)


def released_opset(registry: Registry, domain: str) -> int:
    """Return the newest released opset of a domain; 0 if the registry has none.

    In a domain that `releases.yaml` does not list, every opset counts as released once it is defined.
    """
    domain = canonical_domain(domain)
    published = registry.releases.released_opset(domain)
    if published is not None:
        return published
    try:
        return registry.newest_opset(domain)
    except UnknownDomain:
        return 0


def is_preview(domain: str) -> bool:
    """Return whether this is a preview domain, such as `ai.onnx.preview`: its operators are experimental."""
    return "preview" in domain.split(".")


def is_standard(domain: str) -> bool:
    """Return whether a domain is `ai.onnx` or starts with `ai.onnx.`, as the domains of ONNX do."""
    return f"{canonical_domain(domain)}.".startswith(f"{DEFAULT_DOMAIN}.")


def is_released(registry: Registry, version: OperatorVersion) -> bool:
    """Return whether a version is final: preview operators and versions of unreleased opsets are not."""
    newest = released_opset(registry, version.domain)
    return version.since_version <= newest and not is_preview(version.domain)


def next_opset(registry: Registry, domain: str) -> int:
    """Return the opset that a new operator version enters: the one after the newest released opset."""
    return released_opset(registry, domain) + 1
