"""Models and texts of at most 100 KB that are costly unless time is linear and declared sizes are limited."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import opshift
from fuzzing import corpus
from fuzzing.mutations import SIZES, TEXTS, is_repeated, messages
from opshift.model.attributes import ATTRIBUTE_TYPES
from opshift.model.element_types import BY_NAME
from opshift.model.messages import AttributeProto, GraphProto, ModelProto, NodeProto, TypeProto
from opshift.model.operator_ids import model_domain
from opshift.model.types import short_type
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from opshift.registry.selection import STATUSES

MAX_BYTES = 100_000
"""Maximum size of a model or a text."""

COUNTS = (1, 2, 3, 30, 1_000, 5_000, 20_000)
"""Lengths of lists, which are then cut to fit the maximum size."""

DIMS = (0, 1, 1, 2, 3, 4, 64, 1_000, 2**20, 2**31, 2**40, 2**62, 2**63 - 1, "N", "M", None)
"""Declared sizes of dimensions."""

MAX_SUBGRAPHS = 30
"""Maximum nesting of subgraphs, which protobuf just accepts."""

SNIPPETS = (
    'Relu(x)\n', 'y = Relu(x)\n', 'A(x)\n', 'Softmax(x, axis=1)\n', 'y, z = Split(x)\n', 'x,', '(',
    ')', '[', '{', '<', '>', '<a=', '=>', '=', '1', '-1,', '1.', '.5', '1e', '9', '"', "'", '\\"',
    "\\'", '\\', '#', '#\n', '\n', ' ', 'a.', '%', '/', '@', ':', 'seq(', 'float[', 'float[N,',
    'float[9000000000000000000,', 'optional(', 'map(int64,', 'If(c) <then_branch = g () => (y) {',
    'make_node(', "'a',", '"a":', '{"node":[', '{"graph":{', 'node {', 'attribute { g { ', 'graph {',
    'name: "a" ', 'input: "x" ', 'ir_version: ', '<ir_version: 8>', 'opset_import: [', 'inf', 'nan',
    'True', '\x00', '\xe9', '\u202e',
)  # fmt: skip
"""Parts of texts that are repeated."""

TEXT_STARTS = (
    "",
    "",
    "y = Relu(x)\n",
    '<ir_version: 8, opset_import: ["": 17]> g (',
    "y = Sum(",
    "y = Constant<value = ",
)


def large_text(random: Random) -> bytes:
    """Return a text that consists of many repetitions of a few parts."""
    text, size = random.choice(TEXT_STARTS), random.choice((20_000, MAX_BYTES))
    parts = [random.choice(SNIPPETS) for _ in range(random.choice((1, 1, 2, 3)))]
    for index in range(random.choice((1, 1, 2))):
        part = "".join(parts[index:]) or parts[0]
        is_numbered = random.random() < 0.3 and part[-1:].isalnum()
        repeated = (
            f"{part}{number}" if is_numbered else part for number in range(size // len(part.encode()))
        )
        text += "".join(repeated)
    text += random.choice(("", "", "a", ")", "> (x)", "\n", '"'))
    return text.encode()[:MAX_BYTES]


def large_model(random: Random) -> bytes:
    """Return a model with long lists, deep nesting, or huge declared sizes."""
    kind = random.random()
    if kind < 0.45:
        model = _operator_model(random)
    elif kind < 0.55:
        model = _nested_model(random)
    elif kind < 0.65:
        model = _calls_model(random)
    else:
        model = ModelProto.FromString(corpus.any_model(random))
    for _ in range(random.choice((0, 1) if kind < 0.45 else (1, 1, 2))):
        _grow_field(model, random)
    return model.SerializeToString()


def _grow_field(model: ModelProto, random: Random) -> None:
    """Repeat an element of one repeated field until the maximum size is reached."""
    missing = min(MAX_BYTES, random.choice((10_000, MAX_BYTES))) - model.ByteSize() - 1_000
    found = [(message, field) for message in messages(model) for field in message.DESCRIPTOR.fields]
    found = [(message, field) for message, field in found if is_repeated(getattr(message, field.name))]
    # Each kind of field gets an equal chance, because most messages are nodes.
    names = sorted({field.full_name for _, field in found})
    chosen = random.choice(names)
    message, field = random.choice([each for each in found if each[1].full_name == chosen])
    values = getattr(message, field.name)
    if field.message_type is None:
        value = random.choice(list(values)) if len(values) else _any_plain(field, random)
        size = len(value) + 2 if isinstance(value, str | bytes) else 10
        values.extend([value] * max(missing // size, 0))
        return
    pattern = values[random.randrange(len(values))].SerializeToString() if len(values) else b""
    style, last = random.choice(("same", "fresh", "chain", "all fresh")), ""
    for index in range(max(missing // (len(pattern) + 10), 0)):
        added = values.add()
        added.MergeFromString(pattern)
        last = _rename(added, style, index, last)
        missing -= max(added.ByteSize() - len(pattern), 0)  # new names may be longer than the old ones
        if (index + 1) * (len(pattern) + 10) > missing:
            break


def _rename(message: Any, style: str, index: int, last: str) -> str:
    """Give a copy of a message new names, and return its last output."""
    if style == "same":
        return ""
    fields = message.DESCRIPTOR.fields_by_name
    if "name" in fields and not is_repeated(message.name):
        message.name = f"{message.name}{index}"
    if isinstance(message, NodeProto):
        message.output[:] = [f"{name}{index}" for name in message.output]
        if style == "all fresh":
            message.input[:] = [f"{name}{index}" for name in message.input]
        elif style == "chain" and message.input and last:
            message.input[0] = last
        return str(message.output[0]) if message.output else ""
    for key in ("key", "domain"):
        if style == "all fresh" and key in fields:
            setattr(message, key, f"{getattr(message, key)}{index}")
    return ""


def _any_plain(field: Any, random: Random) -> Any:
    if field.cpp_type == field.CPPTYPE_STRING:
        text = random.choice((*TEXTS, "x" * 1_000))
        return text.encode() if field.type == field.TYPE_BYTES else text
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return 1.0
    return (
        1
        if field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32, field.CPPTYPE_UINT64)
        else random.choice(SIZES)
    )


@cache
def operator_versions() -> tuple[OperatorVersion, ...]:
    """Return all operator versions."""
    registry = opshift.default_registry()
    return tuple(registry.select(versions="all", status=STATUSES))


def _operator_model(random: Random) -> ModelProto:
    """Return a model with nodes of one operator, whose inputs and attributes declare hostile sizes."""
    return operator_model(random.choice(operator_versions()), random)


def operator_model(version: OperatorVersion, random: Random) -> ModelProto:
    """Return a model with nodes of an operator version, whose inputs and attributes declare hostile sizes."""
    model = ModelProto(ir_version=random.choice((3, 8, 10)))
    model.opset_import.add(domain=model_domain(version.domain), version=version.since_version)
    if version.domain != "ai.onnx":
        model.opset_import.add(domain="", version=random.choice((11, 17, 21)))
    graph, node = model.graph, model.graph.node.add(op_type=version.name, domain=model_domain(version.domain))
    graph.name = "g"
    dims = _hostile_dims(random)
    for parameter in version.inputs:
        for index in range(_random_arity(parameter, random)):
            name = f"{parameter.name}{index}"
            node.input.append(name)
            _add_input(graph, name, random.choice(version.types_of(parameter)), dims, random)
    for parameter in version.outputs:
        node.output.extend(f"{parameter.name}_{index}" for index in range(_random_arity(parameter, random)))
    for name, attribute in version.attributes.items():
        if attribute.required or random.random() < 0.5:
            _write_attribute(node.attribute.add(name=name), attribute, len(dims), node, random)
    for name in node.output[:50]:
        graph.output.add(name=name)
    for index in range(min(random.choice((0, 0, 2, 30)), MAX_BYTES // max(node.ByteSize(), 1))):
        copy = graph.node.add()
        copy.CopyFrom(node)
        copy.output[:] = [f"{name}_{index}" for name in node.output]
    if model.ByteSize() > MAX_BYTES:  # several inputs or attributes are long lists
        return operator_model(version, random)
    return model


def _hostile_dims(random: Random) -> list[int | str | None]:
    """Return a shape, often with one dimension that is large or unknown."""
    rank = random.choice((0, 1, 2, 3, 4, 4, 5, 8, 30, 1_000))
    if not rank or random.random() < 0.4:
        return [random.choice(DIMS) for _ in range(rank)]
    dims: list[int | str | None] = [random.choice((1, 2, 3, 4, 64)) for _ in range(rank)]
    dims[random.randrange(rank)] = random.choice(DIMS)
    return dims


def _random_arity(parameter: Parameter, random: Random) -> int:
    if parameter.option == "variadic":
        return random.choice((parameter.min_arity, 1, 2, 3, 50, 2_000))
    return 1 if parameter.option == "single" or random.random() < 0.6 else 0


def _add_input(graph: GraphProto, name: str, type_text: str, dims: list[Any], random: Random) -> None:
    element_type = short_type(type_text)
    is_tensor = element_type in BY_NAME
    if is_tensor and element_type in ("int64", "int32", "bool", "float") and random.random() < 0.4:
        count = random.choice((1, len(dims), 2 * len(dims), 2, 5_000))
        tensor = graph.initializer.add(name=name, data_type=BY_NAME[element_type].number, dims=[count])
        smalls = (
            (0, 1, -1, 2) if element_type == "bool" or random.random() < 0.5 else (*DIMS[:8], -1, -(2**31))
        )
        getattr(tensor, BY_NAME[element_type].field).extend(
            random.choice(smalls) % 2**31 for _ in range(count)
        )
        return
    value = graph.input.add(name=name)
    if not is_tensor or random.random() < 0.1:
        _write_type(value.type, type_text)
        return
    tensor_type = value.type.tensor_type
    tensor_type.elem_type = BY_NAME[element_type].number
    shape = [random.choice(DIMS)] if random.random() < 0.25 else dims
    tensor_type.shape.SetInParent()
    for each in shape:
        dim = tensor_type.shape.dim.add()
        if isinstance(each, int):
            dim.dim_value = each
        elif each:
            dim.dim_param = each


def _write_type(proto: TypeProto, type_text: str) -> None:
    """Write a type such as `seq(tensor(float))` into an empty TypeProto; the values of a map are floats."""
    if type_text.startswith(("seq(", "optional(")):
        kind, _, inner = type_text.partition("(")
        _write_type((proto.sequence_type if kind == "seq" else proto.optional_type).elem_type, inner[:-1])
    elif type_text.startswith("map("):
        proto.map_type.key_type = BY_NAME["int64"].number
        proto.map_type.value_type.tensor_type.elem_type = BY_NAME["float"].number
    else:
        element_type = BY_NAME.get(short_type(type_text))
        proto.tensor_type.elem_type = element_type.number if element_type else 1


def _write_attribute(
    proto: AttributeProto, attribute: Attribute, rank: int, node: NodeProto, random: Random
) -> None:
    kind = ATTRIBUTE_TYPES[attribute.type]
    proto.type = kind.number
    count = random.choice((1, 2, rank, rank, 2 * rank, 5_000)) if kind.is_repeated else 1
    base = kind.name.removesuffix("S") if kind.is_repeated else kind.name
    if base == "GRAPH":
        for _ in range(min(count, 3)):
            _write_body(getattr(proto, kind.field).add() if kind.is_repeated else proto.g, node, random)
    elif base == "TENSOR":
        tensor = proto.tensors.add() if kind.is_repeated else proto.t
        size = random.choice((1, 2, 5_000, 2**40))
        tensor.data_type = 1
        tensor.dims.append(size)
        tensor.float_data.extend([1.0] * (size if size < 2**40 else 3))
    elif base in ("INT", "FLOAT", "STRING"):
        if base == "STRING":
            allowed = [str(each).encode() for each in attribute.values or ()] or [
                b"",
                b"ab,bc->ac",
                b"x" * 90_000,
            ]
            values: list[Any] = [random.choice(allowed) for _ in range(count)]
        else:
            smalls = (0, 1, 1, 2, 3, -1)
            chosen = smalls if random.random() < 0.6 else (*smalls, *SIZES)
            values = [random.choice(chosen) for _ in range(count)]
        if attribute.values and base != "STRING":
            values = [random.choice(list(attribute.values)) for _ in range(count)]
        if kind.is_repeated:
            getattr(proto, kind.field).extend(values)
        else:
            setattr(proto, kind.field, values[0])


def _write_body(graph: GraphProto, node: NodeProto, random: Random) -> None:
    """Write a subgraph with about as many values as the node, or with few values."""
    graph.name = "body"
    inputs = random.choice((len(node.input), len(node.input) + 1, 0, 2))
    outputs = random.choice((len(node.output), len(node.output) + 1, 1))
    for index in range(min(inputs, 2_000)):
        graph.input.add(name=f"i{index}").type.tensor_type.elem_type = 1
    for index in range(min(outputs, 2_000)):
        source = f"i{index % inputs}" if inputs else "x"
        graph.node.add(op_type="Identity", input=[source], output=[f"o{index}"])
        graph.output.add(name=f"o{index}")


def _nested_model(random: Random) -> ModelProto:
    """Return a model with nested subgraphs, each with the same nodes and captured values."""
    model = ModelProto(ir_version=8)
    model.opset_import.add(domain="", version=random.choice((9, 13, 17)))
    graph = model.graph
    graph.name = "g"
    graph.input.add(name="x").type.tensor_type.elem_type = 1
    graph.input.add(name="c").type.tensor_type.elem_type = 9
    graph.output.add(name="t")
    depth = random.randint(2, MAX_SUBGRAPHS)
    breadth = random.choice((1, 1, 10, 60_000 // depth // 60))
    for _ in range(depth):
        for index in range(breadth):
            operator = random.choice(("Softmax", "Relu", "Clip", "Shape"))
            graph.node.add(op_type=operator, input=["x"], output=[f"v{index}"])
        node = graph.node.add(op_type="If", input=["c"], output=["t"])
        other = node.attribute.add(name="else_branch", type=5)
        other.g.node.add(op_type="Identity", input=["x"], output=["t"])
        other.g.output.add(name="t")
        branch = node.attribute.add(name="then_branch", type=5)
        branch.g.output.add(name="t")
        graph = branch.g
    graph.node.add(op_type="Softmax", input=["x"], output=["t"])
    return model


def _calls_model(random: Random) -> ModelProto:
    """Return a model with functions that call each other; the number of call paths may be exponential."""
    model = ModelProto(ir_version=8)
    opset = random.choice((9, 12, 17))
    model.opset_import.add(domain="", version=opset)
    model.opset_import.add(domain="local", version=1)
    model.graph.name = "g"
    model.graph.input.add(name="x").type.tensor_type.elem_type = random.choice((1, 10, 16))
    model.graph.output.add(name="y")
    count, calls = random.choice((3, 30, 400)), random.choice((1, 2, 3))
    for index in range(count):
        function = model.functions.add(name=f"f{index}", domain="local", input=["a"], output=["b"])
        function.opset_import.add(domain="", version=opset)
        function.opset_import.add(domain="local", version=1)
        last = "a"
        for call in range(calls):
            is_last = call == calls - 1
            name, domain = (
                (f"f{index + 1}", "local") if index + 1 < count else (random.choice(("Softmax", "Gelu")), "")
            )
            function.node.add(
                op_type=name, domain=domain, input=[last], output=["b" if is_last else f"v{call}"]
            )
            last = f"v{call}"
    for index in range(random.choice((1, 1, 500))):
        model.graph.node.add(op_type="f0", domain="local", input=["x"], output=[f"y{index or ''}"])
    return model
