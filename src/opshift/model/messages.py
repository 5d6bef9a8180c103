"""ONNX's protobuf messages, up to IR version 14.

The classes are created from ``opsets/onnx.binpb`` in a private descriptor pool. They therefore work next to
an imported ``onnx`` (the two exchange serialized bytes, not objects) and with any protobuf release and
backend, because no generated code is involved. Fields added after IR version 14 survive parsing and writing.

No other module of the package imports ``google.protobuf``. The fields and their types are in
``messages.pyi``; enum values are plain integers, named by ``TensorProto.DataType.Name(value)``.
"""

from typing import Final

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import DecodeError as DecodeError
from google.protobuf.message import EncodeError as EncodeError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from opshift.model.errors import InvalidModel
from opshift.opsets import OPSETS

_POOL: Final = DescriptorPool()
_POOL.AddSerializedFile((OPSETS / "onnx.binpb").read_bytes())


def _message_class(name: str) -> type[Message]:
    return GetMessageClass(_POOL.FindMessageTypeByName(f"onnx.{name}"))


AttributeProto = _message_class("AttributeProto")
DeviceConfigurationProto = _message_class("DeviceConfigurationProto")
FunctionProto = _message_class("FunctionProto")
GraphProto = _message_class("GraphProto")
IntIntListEntryProto = _message_class("IntIntListEntryProto")
ModelProto = _message_class("ModelProto")
NodeDeviceConfigurationProto = _message_class("NodeDeviceConfigurationProto")
NodeProto = _message_class("NodeProto")
OperatorProto = _message_class("OperatorProto")
OperatorSetIdProto = _message_class("OperatorSetIdProto")
OperatorSetProto = _message_class("OperatorSetProto")
ShardedDimProto = _message_class("ShardedDimProto")
ShardingSpecProto = _message_class("ShardingSpecProto")
SimpleShardedDimProto = _message_class("SimpleShardedDimProto")
SparseTensorProto = _message_class("SparseTensorProto")
StringStringEntryProto = _message_class("StringStringEntryProto")
TensorAnnotation = _message_class("TensorAnnotation")
TensorProto = _message_class("TensorProto")
TensorShapeProto = _message_class("TensorShapeProto")
TrainingInfoProto = _message_class("TrainingInfoProto")
TypeProto = _message_class("TypeProto")
ValueInfoProto = _message_class("ValueInfoProto")

OperatorStatus = EnumTypeWrapper(_POOL.FindEnumTypeByName("onnx.OperatorStatus"))
Version = EnumTypeWrapper(_POOL.FindEnumTypeByName("onnx.Version"))
IR_VERSION: Final = Version.Value("IR_VERSION")


def has_unknown_fields(message: Message) -> bool:
    """Return whether a message has fields that its class does not define; ignore nested messages."""
    # imported here: few conversions look for unknown fields
    from google.protobuf.unknown_fields import UnknownFieldSet

    return len(UnknownFieldSet(message)) > 0


def read_text_into(message: Message, text: str) -> None:
    """Fill an empty message from JSON, or from protobuf's text format.

    Raises:
        InvalidModel: the text is in neither of these formats.
    """
    from google.protobuf import json_format, text_format  # imported here: few models are read as text

    module = json_format if text.lstrip().startswith("{") else text_format
    try:
        module.Parse(text, message, descriptor_pool=_POOL)
    except (module.ParseError, ValueError, RecursionError) as error:
        problem, *_ = str(error).splitlines()
        reason = f"cannot be parsed as a {message.DESCRIPTOR.name}: {problem}"
        raise InvalidModel(reason, remedy="write a node as: y = Softmax <axis = 1> (x)") from error
