"""Functions that find the uses of features that IR versions added."""

import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice

from opshift.checker.ir_features.contents import STANDALONE, Contents, Located, Use, since
from opshift.model.attributes import INT, graphs_in, sparse_tensors_in, types_in
from opshift.model.element_types import BY_NUMBER
from opshift.model.graphs import Container, node_place
from opshift.model.messages import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)
from opshift.model.offloaded_tensors import EXTERNAL
from opshift.model.operator_ids import LocalFunction, called_function, function_id
from opshift.model.tensors import count_elements, read_tensor, sparse_positions
from opshift.registry.ir_versions import ir_versions

MAX_DENSE_BYTES = 64 * 2**20
"""Maximum size of a dense replacement: a sparse tensor with few values can have a huge shape."""

SPARSE_REMEDY = "replace it by a dense tensor"


def find_standalone_initializers(contents: Contents) -> Iterator[Use]:
    """Yield initializers that cannot be rewritten; if there are none, the first dense standalone one."""
    _, *subgraphs = contents.graphs
    if any(graph.initializer or graph.sparse_initializer for _, graph in subgraphs):
        blocked = [*_shadowing_initializers("graph", contents.model.graph, set())]
        if blocked:
            yield from blocked
            return
    for path, graph in contents.graphs:
        for tensor in standalone_initializers(graph):
            yield Use(STANDALONE, f"{path}, initializer {tensor.name!r}")
            return


SHADOWING_OBSTACLE = (
    "it would become a node output, which must not have the name of a value of an enclosing graph"
)


def _shadowing_initializers(path: str, graph: GraphProto, visible: set[str]) -> Iterator[Use]:
    """Yield standalone initializers of nested graphs with the name of a value of an enclosing graph.

    `visible` has the names of the enclosing graphs. Functions need no search: inlining renames their values.
    """
    container = Container(graph)
    names = {*container.predefined_names(), *(name for node in graph.node for name in node.output)}
    for name in sorted((names & visible).intersection(_standalone_names(graph)), key=str):
        yield Use(STANDALONE, f"{path}, initializer {name!r}", SHADOWING_OBSTACLE, "rename it")
    added = names - visible
    visible |= added  # One set for all graphs, because a copy for each subgraph would take quadratic time.
    for node in graph.node:
        for attribute in node.attribute:
            for inner in graphs_in(attribute):
                holder = f"{path} / {node.name or node.op_type}.{attribute.name}"
                yield from _shadowing_initializers(holder, inner, visible)
    visible -= added


def _standalone_names(graph: GraphProto) -> Iterator[str]:
    yield from (tensor.name for tensor in standalone_initializers(graph))
    yield from (sparse.values.name for sparse in graph.sparse_initializer)


def find_external_data(contents: Contents) -> Iterator[Use]:
    """Yield the tensors with external data."""
    obstacle = "they must be stored in the model"
    remedy = "store the weights in the model: load it with onnx.load, and save it with onnx.save"
    for holder, tensor in contents.tensors:
        if tensor.data_location == EXTERNAL:
            yield Use("external_data", holder.place, obstacle, remedy)


def standalone_initializers(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield the dense initializers of a graph that are not inputs."""
    inputs = {value.name for value in graph.input}
    return (tensor for tensor in graph.initializer if tensor.name not in inputs)


def find_sparse_initializers(contents: Contents) -> Iterator[Use]:
    """Yield the sparse initializers."""
    for path, graph in contents.graphs:
        for sparse in graph.sparse_initializer:
            place = f"{path}, initializer {sparse.values.name!r}"
            yield Use("sparse_initializers", place, _obstacle_of_sparse(sparse), SPARSE_REMEDY)


def find_sparse_attributes(contents: Contents) -> Iterator[Use]:
    """Yield the attributes with sparse tensors; only `sparse_value` of Constant has a dense equivalent."""
    for held in contents.attributes:
        for sparse in sparse_tensors_in(held.proto):
            is_dense = has_dense_equivalent(held, contents)
            obstacle = (
                _obstacle_of_sparse(sparse) if is_dense else "the attribute accepts only sparse tensors"
            )
            yield Use("sparse_attributes", held.place, obstacle, SPARSE_REMEDY)


def has_dense_equivalent(held: Located[AttributeProto], contents: Contents) -> bool:
    """Return whether an attribute is the `sparse_value` of Constant, which also has a dense `value`."""
    is_constant = held.node is not None and contents.is_constant(held.node)
    return is_constant and held.proto.name == "sparse_value"


def _obstacle_of_sparse(sparse: SparseTensorProto) -> str:
    kind = BY_NUMBER.get(sparse.values.data_type)
    values, indices = read_tensor(sparse.values), read_tensor(sparse.indices)
    if kind is None or not kind.code or values is None or indices is None:
        return "its values or indices have an unsupported type or are external data"
    count = count_elements(sparse.dims)
    if count * struct.calcsize(f"<{kind.code}") > MAX_DENSE_BYTES:
        return f"as a dense tensor it would have more than {MAX_DENSE_BYTES // 2**20} MiB"
    positions = sparse_positions(indices, sparse.dims)
    is_consistent = len(positions) == len(values.values) and all(0 <= each < count for each in positions)
    return "" if is_consistent else "its values and indices do not fit its shape"


TYPE_FEATURES = {
    "sparse_tensor_type": "sparse_types",
    "opaque_type": "opaque_types",
    "optional_type": "optional_types",
}
"""Feature of each field of TypeProto that an IR version added."""


def find_types(contents: Contents) -> Iterator[Use]:
    """Yield the uses of newer types by values, tensors and attributes."""
    newer = _newer_types()
    for value in contents.values:
        yield from _uses_in_type(value.proto.type, value.place, newer)
    for holder, tensor in contents.tensors:
        if tensor.data_type in newer:
            yield _use_of_feature(newer[tensor.data_type], holder.place)
    for held in contents.attributes:
        if held.proto.type == INT and held.proto.i in newer:
            yield _use_of_feature(newer[held.proto.i], held.place)
        for declared in types_in(held.proto):
            yield _use_of_feature("type_attributes", held.place)
            yield from _uses_in_type(declared, held.place, newer)


@cache
def _newer_types() -> dict[int, str]:
    """Return the names of the element types that an IR version added, by number."""
    newer = ir_versions().element_types
    return {number: kind.name for number, kind in BY_NUMBER.items() if kind.name in newer}


def _uses_in_type(declared: TypeProto, place: str, newer: dict[int, str]) -> Iterator[Use]:
    """Yield the uses of newer types by a TypeProto and the types nested in it."""
    kind = declared.WhichOneof("value")
    if kind is None:
        return
    content = getattr(declared, kind)
    if kind in TYPE_FEATURES:
        yield _use_of_feature(TYPE_FEATURES[kind], place)
    if kind in ("tensor_type", "sparse_tensor_type") and content.elem_type in newer:
        yield _use_of_feature(newer[content.elem_type], place)
    elif kind in ("sequence_type", "optional_type"):
        yield from _uses_in_type(content.elem_type, place, newer)
    elif kind == "map_type":
        yield from _uses_in_type(content.value_type, place, newer)


def _use_of_feature(feature: str, place: str) -> Use:
    remedy = "use another type in the framework that exports the model"
    return Use(feature, place, "it has no equivalent", remedy)


DEFAULTS_OBSTACLE = "the default applies only to calls of the enclosing function that omit its attribute"

DEFAULTS_REMEDY = "set the attribute in all calls of the enclosing function"


def _find_attribute_defaults(contents: Contents) -> Iterator[Use]:
    """Yield functions with attribute defaults, and calls that may leave such an attribute unset."""
    for path, function in contents.functions:
        if getattr(function, "attribute_proto", ()):
            yield Use("attribute_defaults", path)
    defaults = attribute_defaults(contents)
    for call, caller in contents.calls if defaults else ():
        without_default = caller.attribute if caller else ()
        for attribute in call.proto.attribute:
            may_be_absent = attribute.ref_attr_name in without_default
            if may_be_absent and attribute.name in defaults.get(called_function(call.proto), ()):
                yield Use("attribute_defaults", call.place, DEFAULTS_OBSTACLE, DEFAULTS_REMEDY)


def attribute_defaults(contents: Contents) -> Mapping[LocalFunction, Mapping[str, AttributeProto]]:
    """Return the default attributes by name, for each function with defaults."""
    return {
        function_id(function): {attribute.name: attribute for attribute in function.attribute_proto}
        for _, function in contents.functions
        if getattr(function, "attribute_proto", ())
    }


def _find_functions(contents: Contents) -> Iterator[Use]:
    yield from (Use("functions", path) for path, _ in contents.functions)


def _find_function_value_info(contents: Contents) -> Iterator[Use]:
    for path, function in contents.functions:
        if getattr(function, "value_info", ()):
            yield Use("function_values", path)


def _find_overloads(contents: Contents) -> Iterator[Use]:
    for path, function in contents.functions:
        if function_id(function).overload:
            yield Use("overloads", path)
    calls = contents.nodes_with("overload") if contents.functions else ()
    yield from (Use("overloads", node.place) for node in calls)


def _find_metadata(contents: Contents) -> Iterator[Use]:
    """Yield the first message with metadata; one is enough, because all metadata can be moved."""
    yield from (Use("metadata", place) for place, _ in islice(described_messages(contents), 1))


DescribedMessage = GraphProto | FunctionProto | NodeProto | ValueInfoProto | TensorProto
"""Message that may have metadata."""


def described_messages(contents: Contents) -> Iterator[tuple[str, DescribedMessage]]:
    """Yield (place, message) for each message with metadata, except the model itself."""
    # Message classes of an older `onnx` have no `metadata_props`.
    if not hasattr(contents.model.graph, "metadata_props"):
        return
    nodes = ((path, node) for path, nodes in contents.node_lists for node in nodes)
    # Not `nodes_with`: exporters add metadata to most nodes, and creating a `Located` for each takes longer.
    yield from ((node_place(path, node), node) for path, node in nodes if node.metadata_props)
    containers: list[tuple[str, DescribedMessage]] = [*contents.graphs, *contents.functions]
    for path, container in containers:
        if container.metadata_props:
            yield path, container
    for path, values in contents.value_lists:
        for value in values:
            if value.metadata_props:
                yield f"{path}, value {value.name!r}", value
    for holder, tensor in contents.tensors:
        if tensor.metadata_props:
            yield holder.place, tensor


def _find_quantization_annotations(contents: Contents) -> Iterator[Use]:
    for path, graph in contents.graphs:
        if graph.quantization_annotation:
            yield Use("quantization_annotations", path)


def _find_device_configurations(contents: Contents) -> Iterator[Use]:
    places = ["model"] if getattr(contents.model, "configuration", None) else []
    remedy = (
        "drop them with --allow drop-devices (allow= in Python): they are hints that do not affect results"
    )
    for place in (*places, *(node.place for node in contents.nodes_with("device_configurations"))):
        yield Use("device_configurations", place, "they would be lost", remedy, "drop-devices")


def _find_training_info(contents: Contents) -> Iterator[Use]:
    remedy = "drop it with --allow drop-training (allow= in Python): inference does not use it"
    for index in range(len(contents.model.training_info)):
        yield Use("training", f"training_info[{index}]", "it would be lost", remedy, "drop-training")


Finder = Callable[[Contents], Iterator[Use]]

ModelRewrite = Callable[[Contents], None]

FINDERS: dict[Finder, tuple[str, ...]] = {
    _find_device_configurations: ("device_configurations",),
    _find_metadata: ("metadata",),
    _find_overloads: ("overloads",),
    _find_function_value_info: ("function_values",),
    _find_attribute_defaults: ("attribute_defaults",),
    _find_functions: ("functions",),
    _find_training_info: ("training",),
    find_sparse_initializers: ("sparse_initializers",),
    find_sparse_attributes: ("sparse_attributes",),
    _find_quantization_annotations: ("quantization_annotations",),
    find_standalone_initializers: (STANDALONE,),
    find_external_data: ("external_data",),
    find_types: (
        "opaque_types",
        "optional_types",
        "sparse_types",
        "type_attributes",
        *ir_versions().element_types,
    ),
}
"""Features and element types that each function can find."""


def find_uses(contents: Contents) -> Iterator[Use]:
    """Yield uses of features that were added after IR version `contents.oldest`, up to `contents.newest`."""
    span = range(contents.oldest + 1, contents.newest + 1)
    for find, versions in _VERSIONS.items():
        if not versions.isdisjoint(span):
            yield from (use for use in find(contents) if since(use.feature) in span)


_VERSIONS = {find: frozenset(map(since, features)) for find, features in FINDERS.items()}
"""For each function, the IR versions that added the features which the function finds."""
