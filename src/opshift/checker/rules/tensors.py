"""Rules for constant tensors, dense and sparse: type, shape, elements and their field, initializers."""

from itertools import pairwise

from opshift.checker.checked_nodes import CheckedSparseTensor, CheckedTensor, InternalTensor
from opshift.checker.containers import CheckedGraph
from opshift.checker.findings import ERROR, INFO, WARNING, duplicate_names, list_names
from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.checker.rule_table import NAMES, Problems, rule
from opshift.checker.rules.types import element_type_problems
from opshift.model.element_types import BY_NUMBER, ElementType, byte_size, element_bits
from opshift.model.offloaded_tensors import with_payload
from opshift.model.tensors import count_elements, element_count, read_tensor, sparse_positions
from opshift.model.types import element_type_of, shape_of, shape_to_string, shapes_conflict

SOURCE = "onnx.proto: TensorProto"

SPARSE_SOURCE = "onnx.proto: SparseTensorProto"

INITIALIZERS = "onnx.proto: GraphProto.initializer"

INT64 = 7
"""`TensorProto.INT64`."""


@rule("tensor.type", ERROR, SOURCE, "set data_type to the type of the elements")
def element_type(tensor: CheckedTensor) -> Problems:
    """A tensor must have a valid element type."""
    return element_type_problems(tensor.proto.data_type)


@rule("tensor.dims", ERROR, "IR: Tensor Definition", "set dims to the shape of the elements")
def dims(tensor: CheckedTensor) -> Problems:
    """The dimensions of a tensor must not be negative."""
    if any(dim < 0 for dim in tensor.proto.dims):
        yield f"has the shape {list(tensor.proto.dims)}, with a negative dimension"


@rule("tensor.segment", WARNING, SOURCE, "join the segments: no known runtime reads them")
def segment(tensor: CheckedTensor) -> Problems:
    """A tensor should not be split into segments."""
    if tensor.proto.HasField("segment"):
        yield "is a segment of a tensor"


@rule("tensor.single", ERROR, SOURCE, "keep only the field with the correct elements")
def single_field(tensor: InternalTensor) -> Problems:
    """The elements of a tensor must be in only one field."""
    if len(tensor.filled_fields) > 1:
        yield f"has elements in {' and '.join(tensor.filled_fields)}"


@rule("tensor.field", ERROR, SOURCE, "store the elements in the field for their type")
def field(tensor: InternalTensor) -> Problems:
    """The elements of a tensor must be in the field for their type."""
    kind = tensor.kind
    if kind is not None:
        for used in tensor.filled_fields:
            if used != kind.field and (used != "raw_data" or kind.name == "string"):
                yield f"has {kind.name} elements in {used}; expected {kind.field}"


@rule(
    "tensor.size",
    ERROR,
    "IR: Tensor Definition",
    "correct the shape, or store all elements; the file may be truncated",
)
def size(tensor: InternalTensor) -> Problems:
    """A tensor must have the number of elements that its shape requires."""
    kind, used = tensor.kind, tensor.filled_fields
    count = element_count(tensor.proto)
    if kind is None or count is None or len(used) > 1 or tensor.proto.HasField("segment"):
        return
    if count and not used:
        yield f"has no elements; its shape {list(tensor.proto.dims)} requires {count:,}"
    for name, actual in used.items():
        size_in_bytes = byte_size(kind, count)
        minimum, maximum = _entries(kind, count) if name == kind.field else (size_in_bytes, size_in_bytes)
        if not minimum <= actual <= maximum and name in (kind.field, "raw_data"):
            unit = "bytes" if name == "raw_data" else f"entries in {name}"
            yield f"has {actual:,} {unit}; {count:,} elements of {kind.name} require {maximum:,}"


@rule("tensor.bits", ERROR, SOURCE, "clear the unused bits")
def unused_bits(tensor: InternalTensor) -> Problems:
    """The unused bits of a tensor with 6-bit elements must be zero."""
    kind, count = tensor.kind, element_count(tensor.proto)
    if kind is None or element_bits(kind) != 6 or not count:
        return
    if any(not 0 <= entry < 64 for entry in tensor.proto.int32_data):
        yield "has entries of more than 6 bits"
    tail = count * 6 % 8  # number of bits of the last byte that belong to an element; 0 if all do
    raw = with_payload(tensor.proto).raw_data
    if tail and len(raw) == byte_size(kind, count) and raw[-1] >> tail:
        yield "has nonzero bits after the last element"


@rule("tensor.text", WARNING, SOURCE, "store the bytes as a tensor of uint8")
def valid_text(tensor: InternalTensor) -> Problems:
    """The strings of a tensor must be valid UTF-8."""
    try:
        b" ".join(tensor.proto.string_data).decode()
    except UnicodeDecodeError:
        yield "contains strings that are not valid UTF-8"


def _entries(kind: ElementType, count: int) -> tuple[int, int]:
    """Return the minimum and maximum number of entries of a typed field.

    For types of 2 and 4 bits, some writers fill only one byte of an int32 entry, others all four.
    """
    if element_bits(kind) in (2, 4):
        return -(-count * element_bits(kind) // 32), byte_size(kind, count)
    # A complex number has two entries: its real and its imaginary part.
    entries = 2 * count if kind.name.startswith("complex") else count
    return entries, entries


@rule("initializer.name", ERROR, INITIALIZERS, "set the name that nodes read, or remove the initializer")
def initializer_name(graph: CheckedGraph) -> Problems:
    """An initializer must have a name."""
    unnamed = sum(not name for name in graph.initializers)
    if unnamed:
        yield f"{unnamed} of {len(graph.initializers)} initializers have no name"


@rule("initializer.unique", ERROR, INITIALIZERS, "keep one of the initializers")
def initializer_unique(graph: CheckedGraph) -> Problems:
    """The initializers of a graph, dense and sparse, must have unique names."""
    yield from duplicate_names("initializer", graph.initializers)


@rule(
    "initializer.is-input",
    ERROR,
    f"{NAMES}; onnx.proto: Version",
    "make the initializer a graph input, or set ir_version to 4",
)
def initializer_is_input(graph: CheckedGraph) -> Problems:
    """An initializer must be a graph input, before IR version 4."""
    if graph.model.ir_version < FIRST_IR_WITH_STANDALONE_INITIALIZERS:
        for name in graph.initializers:
            if name and name not in graph.inputs:
                yield f"initializer {name!r} is not an input"


@rule("initializer.is-no-input", WARNING, NAMES, "remove the input or the initializer")
def initializer_is_not_input(graph: CheckedGraph) -> Problems:
    """An initializer of a subgraph must not be an input of the subgraph, since IR version 4."""
    if not graph.is_top and graph.model.ir_version >= FIRST_IR_WITH_STANDALONE_INITIALIZERS:
        for name in graph.initializers:
            if name in graph.inputs:
                yield f"{name!r} is an initializer and an input"


@rule("initializer.type", ERROR, "IR: Graphs", "correct the declared type, or the initializer")
def initializer_type(graph: CheckedGraph) -> Problems:
    """An initializer must have the element type that the graph declares for it."""
    for tensor in graph.proto.initializer:
        declared = graph.declared_types.get(tensor.name)
        if declared is None or tensor.data_type not in BY_NUMBER:
            continue
        actual, expected = BY_NUMBER[tensor.data_type].name, element_type_of(declared)
        if expected is not None and expected != actual:
            yield f"initializer {tensor.name!r} is {actual}, but is declared as {expected}"


@rule("initializer.shape", ERROR, "IR: Graphs", "correct the declared shape, or the initializer")
def initializer_shape(graph: CheckedGraph) -> Problems:
    """An initializer must have the shape that the graph declares for it."""
    for tensor in graph.proto.initializer:
        declared = graph.declared_types.get(tensor.name)
        expected = shape_of(declared) if declared is not None else None
        if expected is not None and shapes_conflict(tuple(tensor.dims), expected):
            actual = f"initializer {tensor.name!r} has the shape {list(tensor.dims)}"
            yield f"{actual}, but is declared as {shape_to_string(expected)}"


@rule("initializer.unused", INFO, "IR: Graphs", "remove it")
def initializer_unused(graph: CheckedGraph) -> Problems:
    """An initializer should be read by a node or returned by the graph."""
    read = graph.read_names.union(output.name for output in graph.proto.output)
    unused = [name for name in graph.initializers if name not in read]
    # No finding with training information, whose bindings may refer to initializers by name.
    if unused and not graph.model.proto.training_info:
        yield f"has unused initializers: {list_names(unused)}"


@rule("sparse.values", ERROR, SPARSE_SOURCE, "provide the values as a tensor of one dimension")
def sparse_values(sparse: CheckedSparseTensor) -> Problems:
    """The values of a sparse tensor must be a tensor of one dimension."""
    if not sparse.proto.HasField("values"):
        yield "has no values"
    elif len(sparse.proto.values.dims) != 1:
        yield f"has values of the shape {list(sparse.proto.values.dims)}; expected one dimension"


@rule("sparse.dims", ERROR, SPARSE_SOURCE, "set dims to the shape of the dense tensor")
def sparse_dims(sparse: CheckedSparseTensor) -> Problems:
    """A sparse tensor must have at least one dimension, and all dimensions must be positive."""
    shape = list(sparse.proto.dims)
    if not shape or min(shape) <= 0:
        yield f"has the shape {shape}; expected positive dimensions"


@rule("sparse.indices", ERROR, SPARSE_SOURCE, "provide one index, or one row of coordinates, for each value")
def sparse_indices(sparse: CheckedSparseTensor) -> Problems:
    """Each value of a sparse tensor must have an index or a row of coordinates, of type int64."""
    proto, count = sparse.proto, _value_count(sparse)
    if not proto.HasField("indices"):
        if count:
            yield f"has {count} values and no indices"
        return
    if proto.indices.data_type != INT64:
        yield "has indices that are not int64"
    shape = list(proto.indices.dims)
    if count is not None and shape not in ([count], [count, len(proto.dims)]):
        yield f"has indices of the shape {shape} for {count} values in {len(proto.dims)} dimensions"


@rule("sparse.order", ERROR, SPARSE_SOURCE, "sort the values by index, and keep each index once")
def sparse_order(sparse: CheckedSparseTensor) -> Problems:
    """The indices of a sparse tensor must be in its shape, and strictly ascending."""
    tensor, dims = read_tensor(sparse.proto.indices), sparse.proto.dims
    if tensor is None or tensor.element_type != "int64":
        return
    if len(tensor.dims) == 1 or (dims and tensor.dims[1:] == (len(dims),)):
        positions = sparse_positions(tensor, dims)
        size = count_elements(dims)
        if not all(0 <= position < size for position in positions):
            yield "has an index outside its shape"
        elif any(one >= other for one, other in pairwise(positions)):
            yield "has indices that are not strictly ascending"


def _value_count(sparse: CheckedSparseTensor) -> int | None:
    shape = sparse.proto.values.dims
    return shape[0] if len(shape) == 1 else None
