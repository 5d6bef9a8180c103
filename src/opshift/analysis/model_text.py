"""Text of models for tools that compare lines, such as `git diff`, and models from ONNX's text syntax."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.model.attributes import TYPE_BY_FIELD, type_name
from opshift.model.element_types import NAME_BY_NUMBER, float_text
from opshift.model.graphs import captured_names, nested_nodes
from opshift.model.messages import (
    AttributeProto,
    GraphProto,
    Message,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    StringStringEntryProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
)
from opshift.model.offloaded_tensors import EXTERNAL, read_external_data, serialize, with_payload
from opshift.model.onnx_text.read import read_text
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, model_domain
from opshift.model.tensors import DATA_FIELDS, can_pack_tensor, element_count, pack_tensor, read_tensor
from opshift.registry.registry import Registry

MAX_ELEMENTS = 8
"""Maximum number of elements; longer tensors become a digest, longer lists are cut and get a digest."""

MAX_TEXT = 200
"""Maximum number of characters of a string; longer strings are cut, and get a digest of the whole string."""

LAST_FIELDS = ("node", "graph", "training_info", "functions")
"""Fields that are printed after all others, in this order."""


def model_lines(model: ModelProto) -> Iterator[str]:
    """Yield the text of a model: each node, value, tensor and property is one line.

    A long tensor is written as element type, shape and digest. The digest does not depend on the field that
    holds the elements. Attributes are sorted by name. Unknown fields are omitted.
    """
    return _field_lines(model, "", ())


def _field_lines(message: Message, indent: str, omitted: Collection[str]) -> Iterator[str]:
    fields = [(field.name, value) for field, value in message.ListFields() if field.name not in omitted]
    fields.sort(key=lambda item: LAST_FIELDS.index(item[0]) if item[0] in LAST_FIELDS else -1)
    for name, value in fields:
        elements = value if hasattr(value, "extend") else (value,)
        if isinstance(message, NodeProto) and name == "attribute":
            elements = _sorted_attributes(value)
        for element in elements:
            if isinstance(element, Message):
                yield from _message_lines(name, element, indent)
            else:
                yield f"{indent}{name} {_literal(element)}"


def _sorted_attributes(attributes: Iterable[AttributeProto]) -> list[AttributeProto]:
    return sorted(attributes, key=lambda each: _name_text(each.name))


def _message_lines(name: str, message: Message, indent: str) -> Iterator[str]:
    printed = PRINTED_FIELDS.get(type(message), ())
    if name == "attribute" and all(field.name in printed for field, _ in message.ListFields()):
        return  # the line of the node already contains the whole attribute
    if isinstance(message, ValueInfoProto) and _tensor_type(message.type):
        printed = (*printed, "type")
    text = _inline_text(message)
    label = "" if isinstance(message, NodeProto) else f"{name} "
    yield f"{indent}{label}{text}".rstrip()
    yield from _field_lines(message, indent + "  ", printed)


def _inline_text(message: Message) -> str:
    """Return the text of the fields in `PRINTED_FIELDS`."""
    if isinstance(message, NodeProto):
        return _node_text(message)
    if isinstance(message, TensorProto):
        return _tensor_text(message)
    if isinstance(message, ValueInfoProto):
        return f"{_name_text(message.name)} {_tensor_type(message.type)}"
    if isinstance(message, AttributeProto):
        return _attribute_text(message)
    if isinstance(message, OperatorSetIdProto):
        return f"{_name_text(canonical_domain(message.domain))} {message.version}"
    if isinstance(message, StringStringEntryProto):
        return f"{_name_text(message.key)} {_literal(message.value)}"
    return ""


def _tensor_type(proto: TypeProto) -> str:
    """Return a tensor type such as `float[N, 3]`; empty for other types and for types with denotations."""
    tensor = proto.tensor_type
    dims = tensor.shape.dim
    if not proto.HasField("tensor_type") or proto.denotation or any(dim.denotation for dim in dims):
        return ""
    shape = f"[{', '.join(map(_dim_text, dims))}]" if tensor.HasField("shape") else ""
    return f"{_element_type(tensor.elem_type)}{shape}"


def _dim_text(dim: TensorShapeProto.Dimension) -> str:
    return (
        str(dim.dim_value)
        if dim.HasField("dim_value")
        else _name_text(dim.dim_param)
        if dim.dim_param
        else "?"
    )


def _element_type(number: int) -> str:
    return NAME_BY_NUMBER.get(number, str(number))


def _node_text(node: NodeProto) -> str:
    domain = f"{_name_text(node.domain)}." if node.domain else ""
    overload = f":{_name_text(node.overload)}" if node.overload else ""
    attributes = ", ".join(map(_attribute_text, _sorted_attributes(node.attribute)))
    operator = f"{domain}{_name_text(node.op_type)}{overload}{f' <{attributes}>' if attributes else ''}"
    label = f"  # {_name_text(node.name)}" if node.name else ""
    return f"{_names_text(node.output)} = {operator}({_names_text(node.input)}){label}"


def _attribute_text(attribute: AttributeProto) -> str:
    fields = [(field.name, value) for field, value in attribute.ListFields() if field.name in TYPE_BY_FIELD]
    values = [_list_text(value) if hasattr(value, "extend") else _literal(value) for _, value in fields]
    types = [TYPE_BY_FIELD[field].number for field, _ in fields]
    # Omit the type if the field with the value implies it; empty lists set no field.
    stated = "" if types == [attribute.type] else f":{type_name(attribute.type)}"
    if attribute.ref_attr_name:
        values.append(f"@{_name_text(attribute.ref_attr_name)}")
    return f"{_name_text(attribute.name)}{stated}{'=' if values else ''}{', '.join(values)}"


def _list_text(values: Iterable[object]) -> str:
    elements = list(values)
    texts = ", ".join(map(_literal, elements[:MAX_ELEMENTS]))
    if len(elements) <= MAX_ELEMENTS:
        return f"[{texts}]"
    # `repr` is fast, but the `repr` of a tensor may show a placeholder instead of its data
    all_texts = ", ".join(map(_literal, elements)) if isinstance(elements[0], Message) else repr(elements)
    return f"[{texts}, ...] ({len(elements)} elements, {_digest_text(all_texts.encode())})"


def _tensor_text(tensor: TensorProto) -> str:
    label = f"{_name_text(tensor.name)} " if tensor.name else ""
    return f"{label}{_element_type(tensor.data_type)}{list(tensor.dims)} {_elements_text(tensor)}"


def _elements_text(tensor: TensorProto) -> str:
    if tensor.data_location == EXTERNAL:
        entries = zip(("offset", "length", "checksum"), read_external_data(tensor)[1:], strict=True)
        stored = "".join(f" {key} {_name_text(value)}" for key, value in entries if value)
        return f"in {_literal(read_external_data(tensor).location)}{stored}"
    tensor = with_payload(tensor)
    count = element_count(tensor)
    found = None if tensor.raw_data and (count is None or count > MAX_ELEMENTS) else read_tensor(tensor)
    if found is not None and len(found.values) <= MAX_ELEMENTS:
        return f"{{{', '.join(map(_literal, found.values))}}}"
    if found is not None and can_pack_tensor(found):
        payload = pack_tensor(found)
        return _digest_text(payload if isinstance(payload, bytes) else repr(payload).encode())
    return _digest_text(tensor.raw_data or serialize(tensor))


def _literal(value: object) -> str:
    """Return the text of a scalar or tensor, of limited length; `...` for a message with separate lines."""
    if isinstance(value, Message):
        return _tensor_text(value) if isinstance(value, TensorProto) else "..."
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    if not isinstance(value, str):
        return str(value)
    quoted = json.dumps(value, ensure_ascii=False)
    return quoted if len(quoted) <= MAX_TEXT else f"{quoted[:MAX_TEXT]}... ({_digest_text(value.encode())})"


def _digest_text(payload: bytes) -> str:
    return f"sha256 {hashlib.sha256(payload).hexdigest()[:16]}"


def _name_text(text: str | bytes) -> str:
    """Return a name, in quotes if it contains characters that would make the line ambiguous.

    Some releases of protobuf return names that are not UTF-8 as bytes.
    """
    return text if isinstance(text, str) and re.fullmatch(r"[\w./:$@+-]+", text) else _literal(text)


def _names_text(names: Iterable[str]) -> str:
    return ", ".join(map(_name_text, names))


PRINTED_FIELDS: Mapping[type[Message], tuple[str, ...]] = {
    NodeProto: ("name", "op_type", "domain", "overload", "input", "output"),
    TensorProto: ("name", "dims", "data_type", "data_location", "external_data", *DATA_FIELDS),
    ValueInfoProto: ("name",),
    AttributeProto: (
        "name", "type", "ref_attr_name", "f", "i", "s", "t", "floats", "ints", "strings", "tensors",
    ),
    OperatorSetIdProto: ("domain", "version"),
    StringStringEntryProto: ("key", "value"),
}  # fmt: skip
"""Fields in the line of a message; its other fields follow on separate lines."""


def model_of_text(text: str, opset: int, registry: Registry) -> ModelProto:
    """Parse a model, a graph, or nodes without a graph, see `read_text`.

    A graph or nodes get `opset`, and opsets of other domains from the same release. For nodes, the graph
    inputs are the values that no node produces, and the graph outputs are the values that no node reads.

    Raises:
        InvalidModel: the text cannot be read.
        OpshiftError: the opset does not exist.
    """
    found = read_text(text)
    if isinstance(found, ModelProto):
        return found
    registry.require_opset(opset)
    domains = {canonical_domain(node.domain) for node in nested_nodes(found)} | {DEFAULT_DOMAIN}
    opsets = {domain: _opset_for_release(domain, opset, registry) for domain in sorted(domains)}
    ir_version = max(FIRST_IR_WITH_STANDALONE_INITIALIZERS, registry.releases.ir_version_for(opsets))
    model = ModelProto(ir_version=ir_version, graph=found)
    for domain, version in opsets.items():
        model.opset_import.add(domain=model_domain(domain), version=version)
    if not found.name:
        _complete_graph(model.graph, opsets, registry)
    return model


def _opset_for_release(domain: str, opset: int, registry: Registry) -> int:
    """Return the opset of a domain in the first ONNX release with ai.onnx `opset`; else its newest, or 1."""
    release = registry.releases.first_release_with(DEFAULT_DOMAIN, opset)
    opsets = {**(release.opsets if release else {}), DEFAULT_DOMAIN: opset}
    if domain in opsets:
        return opsets[domain]
    return registry.newest_opset(domain) if registry.has_domain(domain) else 1


def _complete_graph(graph: GraphProto, opsets: Mapping[str, int], registry: Registry) -> None:
    """Add the graph name, graph inputs and outputs, and output names for nodes without outputs."""
    graph.name = "nodes"
    names = {name for node in nested_nodes(graph) for name in (*node.input, *node.output)}
    numbered: dict[str, Iterator[str]] = {}
    for node in graph.node:
        if not node.output:
            version = registry.known_at(node.op_type, opsets[canonical_domain(node.domain)], node.domain)
            outputs = [each.name for each in version.outputs if each.option == "single"] if version else []
            for name in outputs or ["y"]:
                if name not in numbered:
                    numbered[name] = _numbered_names(name)
                node.output.append(next(each for each in numbered[name] if each not in names))
                names.add(node.output[-1])
    types = {value.name: value for value in graph.value_info}
    produced = dict.fromkeys(name for node in graph.node for name in node.output if name)
    read = dict.fromkeys(name for name in captured_names(graph) if name)
    del graph.value_info[:]
    graph.value_info.extend(types[name] for name in types if name in produced)
    graph.input.extend(types.get(name) or ValueInfoProto(name=name) for name in read)
    inputs = {name for node in nested_nodes(graph) for name in node.input}
    graph.output.extend(ValueInfoProto(name=name) for name in produced if name not in inputs)


def _numbered_names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(1))
