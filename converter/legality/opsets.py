"""Rules for opset imports, those of a model and those of its functions."""

from __future__ import annotations

from opshift.converter.legality.containers import Container, Function, Model
from opshift.converter.legality.findings import ERROR, WARNING
from opshift.converter.legality.rules import Flaws, rule
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

LARGEST_OPSET = 2**31 - 1
"""Readers keep opset versions in 32 bits."""


@rule(
    "opset.import",
    ERROR,
    source="IR: Operator Sets",
    remedy="add an opset import for each domain in use, such as ai.onnx 17",
)
def opset_import(model: Model) -> Flaws:
    """From IR version 3 on a model names the operator sets that it relies on."""
    if model.ir_version >= 3 and not model.proto.opset_import:
        yield "has no opset import"


@rule(
    "opset.default-domain",
    WARNING,
    source="onnx.proto: ModelProto.opset_import",
    remedy="import ai.onnx too",
)
def opset_of_default_domain(model: Model) -> Flaws:
    """A model imports ONNX's own operator set, whether it uses it or not."""
    if model.proto.opset_import and DEFAULT_DOMAIN not in model.opsets:
        yield "does not import ai.onnx"


@rule(
    "opset.unique",
    ERROR,
    source="onnx.proto: FunctionProto.opset_import",
    remedy="keep the import that the nodes were written for",
)
def opset_unique(found: Model | Function) -> Flaws:
    """No domain is imported with two versions."""
    for domain, versions in _imports(found).items():
        if len(set(versions)) > 1:
            yield f"domain {domain} is imported with the versions {', '.join(map(str, versions))}"


@rule(
    "opset.repeated",
    WARNING,
    source="onnx.proto: FunctionProto.opset_import",
    remedy='keep one import; "" and ai.onnx are the same domain',
)
def opset_repeated(found: Model | Function) -> Flaws:
    """Each domain is imported once."""
    for domain, versions in _imports(found).items():
        if len(versions) > 1 and len(set(versions)) == 1:
            yield f"domain {domain} is imported {len(versions)} times"


@rule(
    "opset.version",
    ERROR,
    source="IR: Operator Set Identifiers",
    remedy="import the opset that the nodes were written for",
)
def opset_version(found: Model | Function) -> Flaws:
    """An opset version has at most 32 bits."""
    for domain, versions in _imports(found).items():
        for version in versions:
            if not -LARGEST_OPSET <= version <= LARGEST_OPSET:
                yield f"opset {version} of {domain} is too large"


@rule(
    "opset.positive",
    WARNING,
    source="IR: Operator Set Identifiers",
    remedy="import the opset that the nodes were written for",
)
def opset_positive(found: Model | Function) -> Flaws:
    """An opset version is there, and 1 or more."""
    for domain, versions in _imports(found).items():
        if min(versions) < 1:
            yield f"opset {min(versions)} of {domain} is none"


@rule(
    "opset.known",
    ERROR,
    source="IR: Operator Sets",
    remedy="check the version; if it is right, a newer opshift may know the opset",
)
def opset_known(found: Model | Function) -> Flaws:
    """An imported opset of a known domain is one that exists."""
    registry = (found if isinstance(found, Model) else found.model).registry
    for domain, version in found.opsets.items():
        newest = registry.newest_opset(domain) if domain in registry.domains() else version
        if version > newest:
            yield f"opset {version} of {domain} is not known; the newest known is {newest}"


def _imports(found: Model | Container) -> dict[str, list[int]]:
    imports: dict[str, list[int]] = {}
    for each in found.proto.opset_import:
        imports.setdefault(canonical_domain(each.domain), []).append(each.version)
    return imports
