"""Rules for the model as a whole: its version, its graph, its metadata and its strings."""

import re

from opshift.checker.checked_model import CheckedModel, ModelSource
from opshift.checker.checked_nodes import CheckedAttribute, CheckedNode, CheckedTensor, CheckedValue
from opshift.checker.containers import CheckedFunction, CheckedGraph
from opshift.checker.findings import ERROR, INFO, WARNING, Problem, repeated
from opshift.checker.rule_table import Problems, rule
from opshift.model.operator_ids import REVERSED_DNS_NAME

HTML = re.compile(
    r"</(?:a|b|blockquote|body|code|div|em|font|h[1-6]|html|i|li|ol|p|pre|script|span|strong|style|sub|sup|table|"
    r"tbody|td|th|thead|tr|tt|u|ul)>|<(?:br|hr|img|script)\b[^<>]{0,99}>",
    re.IGNORECASE,
)
"""Tags of HTML elements; other text in angle brackets, such as `<eval_with_key>` or `<s>`, is legal."""

CHECK_FILE = "check that it is the right file and was copied completely"


@rule("model.readable", ERROR, "onnx.proto: ModelProto", CHECK_FILE)
def readable(source: ModelSource) -> Problems:
    """The bytes must be a single serialized model."""
    if source.error:
        yield Problem(source.error, source.remedy)


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


# ONNX requires a domain, but almost no exporter writes one: a finding in every model would hide all others.
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
    # This runs for every node: most have no metadata.
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
    """Return whether all names are text.

    Some protobuf releases return the bytes of strings that are not UTF-8; others raise an error, which ends
    the check with a finding of this rule.
    """
    if isinstance(found, ModelSource):
        return found.is_text
    if not isinstance(found, CheckedNode):
        return isinstance(found.proto.name, str)
    proto = found.proto
    names = (proto.name, proto.op_type, proto.domain, *found.inputs, *found.outputs)
    try:
        # This runs for every node: one join checks the types of all names at once.
        "".join(names)
    except TypeError:
        return False
    return True
