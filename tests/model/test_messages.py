"""The message classes equal ONNX's in fields and bytes, with and without an imported onnx."""

import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.onnx_ml_pb2
import onnx.onnx_operators_ml_pb2
import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto
from google.protobuf.message_factory import GetMessageClass
from onnx import TensorProto, helper, numpy_helper

from opshift.model import messages
from opshift.model.files import parse_model

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "compile_messages.py"
ONNX_DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
ONNX_FILES = (onnx.onnx_ml_pb2.DESCRIPTOR, onnx.onnx_operators_ml_pb2.DESCRIPTOR)


def _with_nested(descriptor: Descriptor) -> Iterator[Descriptor]:
    yield descriptor
    for nested in descriptor.nested_types:
        yield from _with_nested(nested)


def _messages(roots: Iterable[Any]) -> dict[str, Descriptor]:
    return {found.full_name: found for root in roots for found in _with_nested(root)}


OUR_FILE = messages.ModelProto.DESCRIPTOR.file
OUR_MESSAGES = _messages(OUR_FILE.message_types_by_name.values())
ONNX_MESSAGES = _messages(root for file in ONNX_FILES for root in file.message_types_by_name.values())


def _enums(file: Any, all_messages: dict[str, Descriptor]) -> dict[str, EnumDescriptor]:
    nested = [enum for message in all_messages.values() for enum in message.enum_types]
    return {enum.full_name: enum for enum in [*file.enum_types_by_name.values(), *nested]}


OUR_ENUMS = _enums(OUR_FILE, OUR_MESSAGES)
ONNX_ENUMS = _enums(ONNX_FILES[0], ONNX_MESSAGES) | _enums(ONNX_FILES[1], {})

# Descriptors


def _field_facts(field: FieldDescriptorProto, message: DescriptorProto) -> tuple[object, ...]:
    group = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else None
    options = field.options.SerializeToString()
    return field.number, field.type, field.type_name, field.label, field.default_value, options, group


def _message_facts(descriptor: Descriptor) -> dict[str, object]:
    message = DescriptorProto()
    descriptor.CopyToProto(message)
    return {
        "fields": {field.name: _field_facts(field, message) for field in message.field},
        "nested": {nested.name for nested in message.nested_type},
        "enums": {enum.name for enum in message.enum_type},
        "oneofs": {group.name for group in message.oneof_decl},
        "reserved": {number for part in message.reserved_range for number in range(part.start, part.end)},
        "reserved names": set(message.reserved_name),
        "extensions": list(message.extension_range),
        "options": message.options.SerializeToString(),
    }


def _enum_facts(descriptor: EnumDescriptor) -> dict[str, object]:
    enum = EnumDescriptorProto()
    descriptor.CopyToProto(enum)
    return {
        "values": {(value.name, value.number) for value in enum.value},
        "reserved": [*enum.reserved_range, *enum.reserved_name],
        "options": enum.options.SerializeToString(),
    }


def test_defines_the_messages_and_enums_of_onnx() -> None:
    assert set(OUR_MESSAGES) == set(ONNX_MESSAGES)
    assert set(OUR_ENUMS) == set(ONNX_ENUMS)


@pytest.mark.parametrize("name", sorted(ONNX_MESSAGES))
def test_a_message_equals_the_one_of_onnx(name: str) -> None:
    assert _message_facts(OUR_MESSAGES[name]) == _message_facts(ONNX_MESSAGES[name])


@pytest.mark.parametrize("name", sorted(ONNX_ENUMS))
def test_an_enum_equals_the_one_of_onnx(name: str) -> None:
    assert _enum_facts(OUR_ENUMS[name]) == _enum_facts(ONNX_ENUMS[name])


@pytest.mark.parametrize("name", sorted(OUR_FILE.message_types_by_name))
def test_exports_every_message(name: str) -> None:
    assert getattr(messages, name).DESCRIPTOR is OUR_FILE.message_types_by_name[name]


def test_enum_values_are_available_by_name() -> None:
    assert messages.IR_VERSION == onnx.IR_VERSION == messages.Version.Value("IR_VERSION")
    assert messages.OperatorStatus.Name(1) == "STABLE"
    assert messages.TensorProto.DataType.Name(messages.TensorProto.BFLOAT16) == "BFLOAT16"


# Bytes


def _graph(*nodes: onnx.NodeProto, **fields: Any) -> onnx.GraphProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, None])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    return helper.make_graph(list(nodes), "graph", [x], [y], **fields)


def _plain() -> onnx.ModelProto:
    node = helper.make_node("Elu", ["x"], ["y"], name="elu", doc_string="é", alpha=0.5)
    return helper.make_model(_graph(node), opset_imports=[helper.make_opsetid("", 22)])


def _attributes() -> onnx.ModelProto:
    values: dict[str, object] = {
        "float": 1.5,
        "int": -7,
        "string": "text",
        "bytes": b"\xff\x00",
        "tensor": numpy_helper.from_array(np.arange(6).reshape(2, 3), "t"),
        "graph": _graph(helper.make_node("Relu", ["x"], ["y"])),
        "type": helper.make_tensor_type_proto(TensorProto.INT4, [2]),
        "floats": [1.0, float("nan"), -0.0],
        "ints": [0, -1, 2**62],
        "strings": ["a", ""],
    }
    return helper.make_model(_graph(helper.make_node("Any", ["x"], ["y"], domain="test", **values)))


def _tensors() -> onnx.ModelProto:
    raw = [numpy_helper.from_array(np.ones(3, dtype), dtype) for dtype in ("f2", "f4", "f8", "i1", "u8", "?")]
    typed = [
        helper.make_tensor(f"typed{data_type}", data_type, [4], [0, 1, 1, 0])
        for data_type in sorted(
            set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED, TensorProto.STRING}
        )
    ]
    strings = helper.make_tensor("s", TensorProto.STRING, [2], [b"a", b"\xff"])
    return helper.make_model(_graph(initializer=[*raw, *typed, strings]))


def _external_and_sparse() -> onnx.ModelProto:
    external = TensorProto(
        name="e", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL
    )
    external.external_data.add(key="location", value="weights.bin")
    values = numpy_helper.from_array(np.array([1.0, 2.0]), "sparse")
    indices = numpy_helper.from_array(np.array([0, 9]))
    sparse = helper.make_sparse_tensor(values, indices, [10])
    return helper.make_model(_graph(initializer=[external], sparse_initializer=[sparse]))


def _functions() -> onnx.ModelProto:
    opset = helper.make_opsetid("", 21)
    body = helper.make_node("LeakyRelu", ["a"], ["b"])
    body.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    default = helper.make_attribute("slope", 0.1)
    function = helper.make_function(
        "test",
        "F",
        ["a"],
        ["b"],
        [body],
        [opset],
        attributes=["other"],
        attribute_protos=[default],
        overload="o",
    )
    call = helper.make_node("F", ["x"], ["y"], domain="test", overload="o")
    return helper.make_model(
        _graph(call), functions=[function], opset_imports=[opset, helper.make_opsetid("test", 1)]
    )


def _types() -> onnx.ModelProto:
    tensor = helper.make_tensor_type_proto(TensorProto.STRING, ["N", 2])
    opaque = onnx.TypeProto()
    opaque.opaque_type.domain = "test"
    types = [
        helper.make_sequence_type_proto(helper.make_optional_type_proto(tensor)),
        helper.make_map_type_proto(TensorProto.INT64, helper.make_sequence_type_proto(tensor)),
        helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [None, 3]),
        onnx.TypeProto(denotation="IMAGE"),
        opaque,
    ]
    infos = [helper.make_value_info(f"v{number}", each) for number, each in enumerate(types)]
    return helper.make_model(_graph(value_info=infos))


_SAMPLES: dict[int, object] = {
    FieldDescriptor.CPPTYPE_INT32: -3,
    FieldDescriptor.CPPTYPE_INT64: -(2**63),
    FieldDescriptor.CPPTYPE_UINT64: 2**64 - 1,
    FieldDescriptor.CPPTYPE_FLOAT: 0.1,
    FieldDescriptor.CPPTYPE_DOUBLE: 0.1,
    FieldDescriptor.CPPTYPE_ENUM: 1,
}


def _sample(field: Any, depth: int) -> object:
    if field.message_type is not None:
        return _filled(field.message_type, depth - 1)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return b"\x00\xff"
    return "text ü" if field.type == FieldDescriptor.TYPE_STRING else _SAMPLES[field.cpp_type]


def _filled(descriptor: Any, depth: int) -> Any:
    """Return a message with all fields set and `depth` nested levels; a oneof has its last field."""
    message = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if field.message_type is not None and not depth:
            continue
        sample = _sample(field, depth)
        if field.is_repeated:
            getattr(message, field.name).extend([sample, sample])
        elif field.message_type is not None:
            getattr(message, field.name).CopyFrom(sample)
        else:
            setattr(message, field.name, sample)
    return message


def _everything() -> onnx.ModelProto:
    return _filled(onnx.ModelProto.DESCRIPTOR, 5)


MODELS: list[Callable[[], onnx.ModelProto]] = [
    onnx.ModelProto,
    _plain,
    _attributes,
    _tensors,
    _external_and_sparse,
    _functions,
    _types,
    _everything,
]


def _round_trip(data: bytes) -> bytes:
    return parse_model(data).SerializeToString()


@pytest.mark.parametrize("build", MODELS)
def test_a_constructed_model_round_trips(build: Callable[[], onnx.ModelProto]) -> None:
    model = build()
    data = model.SerializeToString()
    assert _round_trip(data) == data
    assert onnx.ModelProto.FromString(_round_trip(data)).SerializeToString() == data


@pytest.mark.parametrize("name", ["OperatorSetProto", "SparseTensorProto", "TrainingInfoProto", "TypeProto"])
def test_a_message_with_all_fields_round_trips(name: str) -> None:
    data = _filled(ONNX_MESSAGES[f"onnx.{name}"], 4).SerializeToString()
    assert getattr(messages, name).FromString(data).SerializeToString() == data


@pytest.mark.parametrize("folder", ["light", "simple", "pytorch-converted", "pytorch-operator"])
def test_a_model_file_of_onnx_round_trips(folder: str) -> None:
    paths = sorted((ONNX_DATA / folder).rglob("*.onnx"))
    assert paths
    for path in paths:
        data = path.read_bytes()
        assert _round_trip(data) == onnx.ModelProto.FromString(data).SerializeToString(), path


def test_onnx_reads_a_constructed_model() -> None:
    model = messages.ModelProto(ir_version=messages.IR_VERSION, graph=messages.GraphProto(name="g"))
    model.opset_import.add(domain="", version=22)
    node = model.graph.node.add(op_type="Cast", input=["x"], output=["y"])
    node.attribute.add(name="to", type=messages.AttributeProto.INT, i=messages.TensorProto.FLOAT16)
    parsed = onnx.ModelProto.FromString(model.SerializeToString())
    assert parsed.SerializeToString() == model.SerializeToString()
    assert helper.get_attribute_value(parsed.graph.node[0].attribute[0]) == TensorProto.FLOAT16


def _length_delimited(number: int, content: bytes) -> bytes:
    assert number < 16
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


VARINT_1000 = b"\xc0\x3e\x07"  # field 1000, value 7
TEXT_1001 = b"\xca\x3e\x03new"  # field 1001, value "new"
NEW_ENUM_VALUE = b"\xa0\x01\x63"  # AttributeProto.type = 99
RESERVED = _length_delimited(12, b"v")  # AttributeProto's dropped field
ATTRIBUTE = _length_delimited(1, b"a") + NEW_ENUM_VALUE + RESERVED + VARINT_1000
GRAPH = _length_delimited(1, _length_delimited(5, ATTRIBUTE) + TEXT_1001)


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        pytest.param(VARINT_1000 + TEXT_1001, [VARINT_1000, TEXT_1001], id="model"),
        pytest.param(b"\x08\x63", [b"\x08\x63"], id="later IR version"),
        pytest.param(_length_delimited(7, TEXT_1001), [TEXT_1001], id="graph"),
        pytest.param(
            _length_delimited(7, GRAPH),
            [TEXT_1001, VARINT_1000, NEW_ENUM_VALUE, RESERVED],
            id="node, attribute",
        ),
    ],
)
def test_keeps_unknown_fields(data: bytes, kept: list[bytes]) -> None:
    assert _round_trip(data) == onnx.ModelProto.FromString(data).SerializeToString()
    assert len(_round_trip(data)) == len(data)
    assert all(part in _round_trip(data) for part in kept)


@pytest.mark.parametrize("convert", [bytes, memoryview])
def test_parse_model_accepts_bytes_and_views(convert: Callable[[bytes], bytes | memoryview]) -> None:
    data = _plain().SerializeToString()
    assert parse_model(convert(data)).SerializeToString() == data


@pytest.mark.parametrize("data", [b"\xff", b"\x08", b"not a model", _plain().SerializeToString()[:-1]])
def test_parse_model_refuses_invalid_bytes(data: bytes) -> None:
    with pytest.raises(messages.DecodeError, match="not a serialized ONNX model"):
        parse_model(data)


# Processes


@pytest.mark.some_cases(2)
@pytest.mark.parametrize("backend", ["upb", "python"])
@pytest.mark.parametrize(
    ("imports", "onnx_loaded"),
    [
        ("import opshift.model.messages", False),
        ("import onnx, opshift.model.messages", True),
        ("import opshift.model.messages, onnx", True),
    ],
)
def test_imports_next_to_onnx_or_alone(imports: str, onnx_loaded: bool, backend: str) -> None:
    code = f"""if True:
        import sys
        {imports}
        data = bytes.fromhex("{_functions().SerializeToString().hex()}")
        assert opshift.model.messages.ModelProto.FromString(data).SerializeToString() == data
        assert ("onnx" in sys.modules) is {onnx_loaded}
    """
    environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": backend}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


# Generated files


def test_generated_files_are_fresh() -> None:
    assert not runpy.run_path(str(TOOL))["stale"]()


@pytest.mark.full
def test_all_modules_work_with_the_messages_of_protobuf_in_python() -> None:
    """These have no attributes for nested messages, which annotations mention."""
    script = (
        "import importlib, pkgutil, opshift\n"
        "for each in pkgutil.walk_packages(opshift.__path__, 'opshift.'):\n"
        "    if not each.name.startswith(('opshift.cli', 'opshift.__main__')):\n"
        "        importlib.import_module(each.name)\n"
    )
    environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    completed = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert (completed.returncode, completed.stderr) == (0, "")
