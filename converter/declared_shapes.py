"""Write the shapes that the caller declares into the inputs, outputs and value_info of a model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy

from opshift.converter.shape_arguments import Dims
from opshift.inference.facts import InferenceScope
from opshift.inference.root_scopes import root_scopes
from opshift.model.errors import UsageError
from opshift.model.graphs import nested_containers, root_graphs
from opshift.model.message_text import hint_at_similar
from opshift.model.messages import GraphProto, ModelProto, TensorShapeProto, TypeProto, ValueInfoProto
from opshift.model.types import (
    Symbol,
    declared_dims,
    dims_text,
    fill_type,
    type_to_string,
)
from opshift.registry.registry import Registry

MAX_LISTED = 10
"""Maximum number of input names that an error message lists."""


def with_declared_shapes(
    model: ModelProto, shapes: Mapping[str, Dims], registry: Registry, *, owned: bool = False
) -> tuple[ModelProto, tuple[str, ...]]:
    """Declare shapes in a copy of a model (in place if `owned`); return it and a sentence per change."""
    if not shapes or not model.HasField("graph"):
        return model, ()
    declared = model if owned else deepcopy(model)
    changes = declare_shapes(declared, shapes, registry)
    return declared if changes else model, changes


def declare_shapes(model: ModelProto, shapes: Mapping[str, Dims], registry: Registry) -> tuple[str, ...]:
    """Write shapes into the declarations of a model, and return a sentence about each change.

    A named dimension that gets a size or another name is replaced in all declared shapes, because equal names
    mean equal sizes.

    Raises:
        UsageError: a value is unknown, an initializer, not a tensor or has no known element type, or a shape
            contradicts the model.
    """
    graph = model.graph
    inputs = {value.name: value for value in graph.input}
    produced = {name for node in graph.node for name in node.output}
    for name in shapes:
        _require_declarable(name, graph, (*inputs, *produced))
    sizes: dict[str, int | str] = {}
    before = {name: declared_dims(value.type) for name, value in inputs.items()}
    for name in filter(inputs.__contains__, shapes):
        _declare(inputs[name], shapes[name], sizes)
    _replace_names(model, sizes)
    computed = {name: dims for name, dims in shapes.items() if name not in inputs}
    if computed:
        scope, *_ = next(root_scopes(model, model, registry))
        scope.defined_names.update(produced)
        declared = {value.name: value for value in (*graph.value_info, *graph.output)}
        for name, dims in computed.items():
            _require_possible(name, dims, scope)
            _declare(declared.get(name) or _add_declaration(name, graph, scope), dims, sizes)
        _replace_names(model, sizes)
    changed = (_change(value, before[name]) for name, value in inputs.items())
    return (
        *filter(None, changed),
        *(f"{name!r} is declared as {dims_text(computed[name])}" for name in computed),
    )


def _change(value: ValueInfoProto, before: Dims | None) -> str:
    """Return a sentence about the changed shape of a graph input; empty if the shape did not change."""
    after = declared_dims(value.type)
    if after is None or after == before:
        return ""
    old = "" if before is None else f" instead of {dims_text(before)}"
    return f"input {value.name!r} is declared as {dims_text(after)}{old}; the result may require this shape"


def _require_declarable(name: str, graph: GraphProto, known: Collection[str]) -> None:
    initializers = {each.name for each in graph.initializer}
    initializers |= {each.values.name for each in graph.sparse_initializer}
    if name in initializers:
        reason = f"{name!r} is an initializer, so its shape cannot be declared"
        raise UsageError(reason, remedy="declare the shapes of graph inputs")
    if name not in known:
        names = [value.name for value in graph.input if value.name not in initializers]
        listed = ", ".join(names[:MAX_LISTED]) + (", ..." if len(names) > MAX_LISTED else "")
        remedy = f"the inputs are {listed}" if names else "the model has no inputs"
        raise UsageError(
            f"the model has no input or value {name!r}{hint_at_similar(name, known)}", remedy=remedy
        )


def _require_possible(name: str, dims: Dims, scope: InferenceScope) -> None:
    """Raise UsageError if a shape contradicts the inferred shape of a computed value."""
    inferred = scope.symbolic_shape(name)
    if inferred is None:
        return
    # A name does not contradict a size that is known only at run time.
    expected = tuple(None if isinstance(size, Symbol) else size for size in inferred)
    if _contradict(expected, dims) or any(
        isinstance(size, Symbol) and isinstance(dim, int) for size, dim in zip(inferred, dims, strict=False)
    ):
        reason = f"shape {dims_text(dims)} contradicts the inferred shape {dims_text(expected)} of {name!r}"
        raise UsageError(reason, remedy="declare the shapes of the graph inputs that it depends on")


def _contradict(known: Dims, dims: Dims) -> bool:
    """Return whether `dims` have a different rank than `known`, or a different value for a known size."""
    return len(known) != len(dims) or any(
        isinstance(old, int) and new not in (None, old) for old, new in zip(known, dims, strict=True)
    )


def _add_declaration(name: str, graph: GraphProto, scope: InferenceScope) -> ValueInfoProto:
    element_type = scope.element_type(name)
    if element_type is None:
        reason = f"the element type of {name!r} is unknown"
        raise UsageError(reason, remedy="add a value_info with its type and shape to the model")
    value = graph.value_info.add()
    value.name = name
    fill_type(value.type, element_type, None)
    return value


def _declare(value: ValueInfoProto, dims: Dims, sizes: dict[str, int | str]) -> None:
    """Write a shape into a declaration, and add the replacement of each named dimension to `sizes`."""
    name, kind = value.name, value.type.WhichOneof("value")
    if kind not in (None, "tensor_type"):
        reason = f"{name!r} has the type {type_to_string(value.type) or kind}, which has no shape"
        raise UsageError(reason, remedy="declare the shapes of tensors")
    before = declared_dims(value.type)
    if before is not None and _contradict(before, dims):
        reason = f"shape {dims_text(dims)} contradicts the declared shape {dims_text(before)} of {name!r}"
        raise UsageError(
            reason, remedy="keep the declared sizes, and write ? for dimensions that stay unchanged"
        )
    shape = value.type.tensor_type.shape
    shape.SetInParent()
    old_dims = before or (None,) * len(dims)
    for position, (old, new) in enumerate(zip(old_dims, dims, strict=True)):
        if position == len(shape.dim):
            shape.dim.add()
        if new is None or new == old:
            continue
        _set_dim(shape.dim[position], new)
        if isinstance(old, str) and sizes.setdefault(old, new) != new:
            reason = f"dimension {old!r} has the sizes {sizes[old]} and {new}, because of {name!r}"
            raise UsageError(reason, remedy="give all dimensions with this name the same size")


def _set_dim(proto: TensorShapeProto.Dimension, dim: int | str) -> None:
    if isinstance(dim, str):
        proto.dim_param = dim
    else:
        proto.dim_value = dim


def _replace_names(model: ModelProto, sizes: Mapping[str, int | str]) -> None:
    """Replace named dimensions in all shapes of graphs and subgraphs; `sizes` has the new sizes or names."""
    final = dict(sizes)
    for _ in sizes:  # a new name may be replaced itself
        final = {name: sizes.get(dim, dim) if isinstance(dim, str) else dim for name, dim in final.items()}
    for graph in nested_containers(root_graphs(model)) if sizes else ():
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in _named_dims(value.type):
                if dim.dim_param in final:
                    _set_dim(dim, final[dim.dim_param])


def _named_dims(proto: TypeProto) -> Iterator[TensorShapeProto.Dimension]:
    """Yield the named dimensions of a type."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield from (dim for dim in getattr(proto, kind).shape.dim if dim.dim_param)
    elif kind == "map_type":
        yield from _named_dims(proto.map_type.value_type)
    elif kind in ("sequence_type", "optional_type"):
        yield from _named_dims(getattr(proto, kind).elem_type)
