"""Rules for the opset imports of a model and of its functions."""

from opshift.checker.checked_model import CheckedModel
from opshift.checker.containers import CheckedFunction
from opshift.checker.findings import ERROR, INFO, WARNING
from opshift.checker.rule_table import Problems, rule
from opshift.model.operator_ids import DEFAULT_DOMAIN, REVERSED_DNS_NAME, canonical_domain

IMPORTS = "onnx.proto: FunctionProto.opset_import"
IDENTIFIERS = "IR: Operator Set Identifiers"


LARGEST_OPSET = 2**31 - 1
"""Largest opset version: readers store it in a signed integer of 32 bits."""


@rule("opset.import", ERROR, "IR: Operator Sets", "import each domain in use, such as ai.onnx 17")
def opset_import(model: CheckedModel) -> Problems:
    """A model must import the operator sets that it uses, since IR version 3."""
    if model.ir_version >= 3 and not model.proto.opset_import:
        yield "has no opset import"


@rule("opset.default-domain", WARNING, "onnx.proto: ModelProto.opset_import", "import ai.onnx too")
def opset_of_default_domain(model: CheckedModel) -> Problems:
    """A model should import ONNX's default operator set, even if it does not use it."""
    if model.proto.opset_import and DEFAULT_DOMAIN not in model.opsets:
        yield "does not import ai.onnx"


@rule("opset.unique", ERROR, IMPORTS, "keep the import that the nodes were written for")
def opset_unique(found: CheckedModel | CheckedFunction) -> Problems:
    """A domain must not be imported with different versions."""
    for domain, versions in _imports(found).items():
        if len(set(versions)) > 1:
            yield f"domain {domain} is imported with the versions {', '.join(map(str, versions))}"


@rule("opset.repeated", WARNING, IMPORTS, 'keep one import; "" and ai.onnx are the same domain')
def opset_repeated(found: CheckedModel | CheckedFunction) -> Problems:
    """A domain should be imported only once."""
    for domain, versions in _imports(found).items():
        if len(versions) > 1 and len(set(versions)) == 1:
            yield f"domain {domain} is imported {len(versions)} times"


@rule("opset.version", ERROR, IDENTIFIERS, "import the opset that the nodes were written for")
def opset_version(found: CheckedModel | CheckedFunction) -> Problems:
    """An opset version must fit into 32 bits."""
    for domain, versions in _imports(found).items():
        for version in versions:
            if not -LARGEST_OPSET <= version <= LARGEST_OPSET:
                yield f"opset {version} of {domain} does not fit into 32 bits"


@rule("opset.positive", WARNING, IDENTIFIERS, "import the opset that the nodes were written for")
def opset_positive(found: CheckedModel | CheckedFunction) -> Problems:
    """An opset version should be set and positive."""
    for domain, versions in _imports(found).items():
        if min(versions) < 1:
            yield f"opset {min(versions)} of {domain} is not positive"


@rule("opset.domain", INFO, "IR: Operator Sets", "reverse a domain name that you own, such as com.example")
def opset_domain(found: CheckedModel | CheckedFunction) -> Problems:
    """The domain of an operator set should be a reversed DNS name."""
    for domain in _imports(found):
        if not REVERSED_DNS_NAME.fullmatch(domain):
            yield f"domain {domain!r} is not a reversed DNS name"


@rule("opset.known", ERROR, "IR: Operator Sets", "check the version; if it is right, update opshift")
def opset_known(found: CheckedModel | CheckedFunction) -> Problems:
    """An imported opset of a known domain must exist."""
    registry = (found if isinstance(found, CheckedModel) else found.model).registry
    for domain, version in found.opsets.items():
        newest = version if registry.is_open(domain) else registry.newest_opset(domain)
        if version > newest:
            yield f"opset {version} of {domain} is unknown; the newest known opset is {newest}"


@rule("opset.unreleased", WARNING, "Versioning: Operator sets", "use a released opset until it is released")
def opset_unreleased(model: CheckedModel) -> Problems:
    """A model should import released opsets only."""
    registry = model.registry
    known = {
        domain: version
        for domain, version in model.opsets.items()
        if not registry.is_open(domain) and version <= registry.newest_opset(domain)
    }
    yield from registry.releases.unreleased(known)


def _imports(found: CheckedModel | CheckedFunction) -> dict[str, list[int]]:
    imports: dict[str, list[int]] = {}
    for entry in found.proto.opset_import:
        imports.setdefault(canonical_domain(entry.domain), []).append(entry.version)
    return imports
