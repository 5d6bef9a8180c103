"""Rules for the model as a whole: versions, opset imports, features, graph, metadata and strings."""

import re

from opshift.checker.checked_model import CheckedModel, ModelSource
from opshift.checker.checked_nodes import CheckedAttribute, CheckedNode, CheckedTensor, CheckedValue
from opshift.checker.checked_values import NewerFeatures
from opshift.checker.containers import CheckedFunction, CheckedGraph
from opshift.checker.findings import ERROR, INFO, WARNING, Problem, repeated
from opshift.checker.ir_features.contents import STANDALONE, since
from opshift.checker.ir_features.finders import FINDERS
from opshift.checker.rule_table import Problems, rule
from opshift.model.operator_ids import DEFAULT_DOMAIN, REVERSED_DNS_NAME, canonical_domain
from opshift.registry.ir_versions import ir_versions

HTML = re.compile(
    r"</(?:a|b|blockquote|body|code|div|em|font|h[1-6]|html|i|li|ol|p|pre|script|span|strong|style|sub|sup|table|"
    r"tbody|td|th|thead|tr|tt|u|ul)>|<(?:br|hr|img|script)\b[^<>]{0,99}>",
    re.IGNORECASE,
)
"""Tags of HTML elements; other text in angle brackets, such as `<eval_with_key>` or `<s>`, is not HTML."""

CHECK_FILE = "check that it is the right file and was copied completely"


IMPORTS = "onnx.proto: FunctionProto.opset_import"

IDENTIFIERS = "IR: Operator Set Identifiers"

LARGEST_OPSET = 2**31 - 1
"""Largest opset version: readers store it in a signed integer of 32 bits."""

SOURCE = "onnx.proto: Version"

OPSET_IMPORTS_SINCE = 3
"""First IR version with opset imports."""


@rule("model.readable", ERROR, "onnx.proto: ModelProto", CHECK_FILE)
def readable(source: ModelSource) -> Problems:
    """The bytes must be a single serialized model."""
    if source.error:
        yield Problem(source.error, source.remedy)


@rule("model.errors", INFO, "the order of the check", "correct these errors, then check the model again")
def few_errors(source: ModelSource) -> Problems:
    """A model should have few errors: the check stops after 20,000."""
    if source.error_count:
        yield f"has {source.error_count:,} errors or more; the check stopped, so others are not reported"


@rule("model.text", ERROR, "onnx.proto: string fields", "use valid UTF-8 names; the file may be damaged")
def valid_text(
    found: ModelSource | CheckedNode | CheckedAttribute | CheckedValue | CheckedTensor,
) -> Problems:
    """Names must be valid UTF-8."""
    if not _is_text(found):
        yield "has a name that is not valid UTF-8"


@rule("model.ir-version", ERROR, "IR: Models", "set ir_version to that of the release with its opsets")
def ir_version(model: CheckedModel) -> Problems:
    """A model must have a positive IR version."""
    if model.ir_version < 1:
        is_set = model.proto.HasField("ir_version")
        yield f"ir_version is {model.ir_version}; expected 1 or more" if is_set else "has no ir_version"


@rule("model.ir-version-known", ERROR, "IR: ONNX Versioning", "check the file, or update opshift")
def ir_version_known(model: CheckedModel) -> Problems:
    """The IR version must exist."""
    newest = max(release.ir_version for release in model.registry.releases.onnx.values())
    if model.ir_version > newest:
        yield f"IR version {model.ir_version} is unknown; the newest known version is {newest}"


@rule(
    "model.ir-version-of-opset",
    WARNING,
    "Versioning: Released Versions",
    "raise ir_version, unless a runtime requires it",
)
def ir_version_of_opset(model: CheckedModel) -> Problems:
    """The IR version should not be older than that of the release that introduced the opset."""
    for domain, opset in model.opsets.items():
        release = model.registry.releases.first_release_with(domain, opset)
        if release and 1 <= model.ir_version < release.ir_version:
            introduced = f"opset {opset} of {domain} was introduced with IR version {release.ir_version}"
            yield f"{introduced}; the model has IR version {model.ir_version}"


@rule("model.graph", ERROR, "IR: Models", "check that it is the right file")
def graph(model: CheckedModel) -> Problems:
    """A model must have a graph."""
    if not model.proto.HasField("graph"):
        yield "has no graph"


# An absent domain gets no finding: ONNX requires a domain, but few exporters write one.
@rule("model.domain", INFO, "IR: Models", "reverse a domain name that you own, such as com.example")
def model_domain(model: CheckedModel) -> Problems:
    """The domain of a model should be a reversed DNS name."""
    domain = model.proto.domain
    if domain and not REVERSED_DNS_NAME.fullmatch(domain):
        yield f"has the domain {domain!r}, which is not a reversed DNS name"


@rule("model.metadata", ERROR, "IR: Optional Metadata", "keep one entry for each key")
def metadata(model: CheckedModel) -> Problems:
    """The keys of the model's metadata must be unique."""
    return _repeated_keys(model)


@rule("metadata.unique", WARNING, "IR: Other Metadata", "keep one entry for each key")
def metadata_unique(
    found: CheckedGraph | CheckedFunction | CheckedNode | CheckedValue | CheckedTensor,
) -> Problems:
    """The metadata keys of a graph, function, node, value or tensor should be unique."""
    # The length is checked first, because the rule runs for every node, and most nodes have no metadata.
    return _repeated_keys(found) if len(found.proto.metadata_props) > 1 else ()


@rule("text.html", WARNING, "IR: Graphs", "use Markdown")
def plain_text(
    found: CheckedModel
    | CheckedGraph
    | CheckedFunction
    | CheckedNode
    | CheckedAttribute
    | CheckedValue
    | CheckedTensor,
) -> Problems:
    """Documentation must not use HTML."""
    text = found.proto.doc_string
    tag = HTML.search(text) if text and isinstance(text, str) else None
    if tag:
        yield f"has HTML in its documentation: {tag.group()}"


def _repeated_keys(
    found: CheckedModel | CheckedGraph | CheckedFunction | CheckedNode | CheckedValue | CheckedTensor,
) -> Problems:
    for key, count in repeated(entry.key for entry in found.proto.metadata_props):
        yield f"has {count} metadata entries for {key!r}"


def _is_text(found: ModelSource | CheckedNode | CheckedAttribute | CheckedValue | CheckedTensor) -> bool:
    """Return whether all names are `str`, not `bytes`.

    Some protobuf releases return a string field that is not UTF-8 as bytes. Others raise UnicodeDecodeError:
    `check` then stops with a finding of the rule `model.text`.
    """
    if isinstance(found, ModelSource):
        return found.is_text
    return found.is_text if isinstance(found, CheckedNode) else isinstance(found.proto.name, str)


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
    for domain, versions in _versions_by_domain(found).items():
        if len(set(versions)) > 1:
            yield f"domain {domain} is imported with the versions {', '.join(map(str, versions))}"


@rule("opset.repeated", WARNING, IMPORTS, 'keep one import; "" and ai.onnx are the same domain')
def opset_repeated(found: CheckedModel | CheckedFunction) -> Problems:
    """A domain should be imported only once."""
    for domain, versions in _versions_by_domain(found).items():
        if len(versions) > 1 and len(set(versions)) == 1:
            yield f"domain {domain} is imported {len(versions)} times"


@rule("opset.version", ERROR, IDENTIFIERS, "import the opset that the nodes were written for")
def opset_version(found: CheckedModel | CheckedFunction) -> Problems:
    """An opset version must fit into 32 bits."""
    for domain, versions in _versions_by_domain(found).items():
        for version in versions:
            if not -LARGEST_OPSET <= version <= LARGEST_OPSET:
                yield f"opset {version} of {domain} does not fit into 32 bits"


@rule("opset.positive", WARNING, IDENTIFIERS, "import the opset that the nodes were written for")
def opset_positive(found: CheckedModel | CheckedFunction) -> Problems:
    """An opset version should be set and positive."""
    for domain, versions in _versions_by_domain(found).items():
        if min(versions) < 1:
            yield f"opset {min(versions)} of {domain} is not positive"


@rule("opset.domain", INFO, "IR: Operator Sets", "reverse a domain name that you own, such as com.example")
def opset_domain(found: CheckedModel | CheckedFunction) -> Problems:
    """The domain of an operator set should be a reversed DNS name."""
    for domain in _versions_by_domain(found):
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


def _versions_by_domain(found: CheckedModel | CheckedFunction) -> dict[str, list[int]]:
    imports: dict[str, list[int]] = {}
    for entry in found.proto.opset_import:
        imports.setdefault(canonical_domain(entry.domain), []).append(entry.version)
    return imports


@rule("ir.opset-imports", ERROR, SOURCE, "raise ir_version to 3")
def opset_imports(model: CheckedModel) -> Problems:
    """A model must not have opset imports before IR version 3: it uses opset 1."""
    if 1 <= model.ir_version < OPSET_IMPORTS_SINCE and model.proto.opset_import:
        yield f"IR version {model.ir_version} does not support opset imports"


@rule("ir.element-types", WARNING, SOURCE, "raise ir_version to the version that added the type")
def element_types(newer: NewerFeatures) -> Problems:
    """The IR version must support the element types of all tensors and values."""
    for element_type in ir_versions().element_types:
        yield from newer.problems(element_type, f"element type {element_type}")


def _register_feature_rule(feature: str) -> None:
    meaning, version = ir_versions().meaning(feature), since(feature)

    def check(newer: NewerFeatures) -> Problems:
        return newer.problems(feature, meaning)

    check.__doc__ = f"A model must not have {meaning} before IR version {version}."
    name = f"ir.{feature.replace('_', '-')}"
    rule(name, WARNING, source=SOURCE, remedy=f"raise ir_version to {version}")(check)


for _features in FINDERS.values():
    for _feature in _features:
        # All element types share one rule, and the rule initializer.is-input covers standalone initializers.
        if _feature in ir_versions().features and _feature != STANDALONE:
            _register_feature_rule(_feature)
