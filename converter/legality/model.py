"""Rules for the model as a whole: its version, its graph, its metadata, its texts."""

from __future__ import annotations

from collections import Counter

from opshift.converter.legality.containers import Function, Graph, Model, Source
from opshift.converter.legality.findings import ERROR, WARNING
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import Attribute, Node, Tensor, Value

SEND_AGAIN = "check that it is the right file and was copied completely"


@rule("model.readable", ERROR, source="onnx.proto: ModelProto", remedy=SEND_AGAIN)
def readable(source: Source) -> Flaws:
    """The bytes are one serialized model."""
    if source.error:
        yield source.error


@rule(
    "model.text",
    ERROR,
    source="onnx.proto: all fields of type string",
    remedy="give it a name that is text; the file may be damaged",
)
def text(found: Source | Node | Attribute | Value | Tensor) -> Flaws:
    """Names are UTF-8 text."""
    if not _is_text(found):
        yield "a name is not UTF-8 text"


@rule("model.ir-version", ERROR, source="IR: Models", remedy="set ir_version to that of the model's opsets")
def ir_version(model: Model) -> Flaws:
    """A model says which IR version it is written for."""
    if model.ir_version < 1:
        yield (
            f"ir_version is {model.ir_version}" if model.proto.HasField("ir_version") else "has no ir_version"
        )


@rule(
    "model.ir-version-known",
    ERROR,
    source="IR: ONNX Versioning",
    remedy="check that the file is intact; if it is, a newer opshift may know the version",
)
def ir_version_known(model: Model) -> Flaws:
    """The IR version is one that exists."""
    newest = max(each.ir_version for each in model.registry.releases.onnx.values())
    if model.ir_version > newest:
        yield f"IR version {model.ir_version} is not known; the newest known is {newest}"


@rule(
    "model.ir-version-of-opset",
    WARNING,
    source="Versioning: Released Versions",
    remedy="raise ir_version, unless a runtime is to read the model that knows the opset only",
)
def ir_version_of_opset(model: Model) -> Flaws:
    """The IR version is no older than the release that brought the opset."""
    for domain, opset in model.opsets.items():
        release = model.registry.releases.first_with(domain, opset)
        if release and 1 <= model.ir_version < release.ir_version:
            came = f"opset {opset} of {domain} came with IR version {release.ir_version}"
            yield f"{came}; this is {model.ir_version}"


@rule("model.graph", ERROR, source="IR: Models", remedy="check that the file is the right one")
def graph(model: Model) -> Flaws:
    """A model has a graph."""
    if not model.proto.HasField("graph"):
        yield "has no graph"


@rule(
    "model.metadata",
    ERROR,
    source="IR: Optional Metadata",
    remedy="keep one entry for each key",
)
def metadata(model: Model) -> Flaws:
    """Each key of the model's metadata is there once."""
    for key, count in Counter(each.key for each in model.proto.metadata_props).items():
        if count > 1:
            yield f"the metadata have {count} entries for {key!r}"


@rule("metadata.unique", WARNING, source="IR: Other Metadata", remedy="keep one entry for each key")
def metadata_unique(found: Graph | Function | Node | Value | Tensor) -> Flaws:
    """Each key of some metadata is there once."""
    entries = found.proto.metadata_props
    if len(entries) > 1:
        for key, count in Counter(each.key for each in entries).items():
            if count > 1:
                yield f"the metadata have {count} entries for {key!r}"


def _is_text(found: Source | Node | Attribute | Value | Tensor) -> bool:
    """Some releases of protobuf hand over as bytes what is not text; others fail, which ends the check."""
    if isinstance(found, Source):
        return found.is_text
    proto = found.proto
    if not isinstance(found, Node):
        return isinstance(proto.name, str)
    names = (proto.name, proto.op_type, proto.domain, *found.inputs, *found.outputs)
    try:
        "".join(names)
    except TypeError:
        return False
    return True
