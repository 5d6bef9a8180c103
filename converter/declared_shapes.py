"""Write the shapes that the caller declares into the inputs, outputs and value_info of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy

from opshift.converter.arguments import Dims
from opshift.inference.facts import InferenceScope
from opshift.inference.root_scopes import root_scopes
from opshift.model.declarations import declarations_in, named_dims
from opshift.model.errors import UsageError
from opshift.model.graphs import nested_containers, root_graphs
from opshift.model.message_text import hint_at_similar
from opshift.model.messages import GraphProto, ModelProto, TensorShapeProto, ValueInfoProto
from opshift.model.types import Symbol, declared_dims, dims_text, fill_type, type_to_string
from opshift.registry.registry import Registry

MAX_LISTED = 10
"""Maximum number of input names that an error message lists."""


def with_declared_shapes(
    model: ModelProto, shapes: Mapping[str, Dims], registry: Registry, *, owned: bool = False
) -> tuple[ModelProto, tuple[str, ...]]:
    """Declare shapes in a copy of a model (in place if `owned`); return it, and a sentence per change."""
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
    declared = {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}
    before = {name: declared_dims(declared[name].type) for name in (*inputs, *shapes) if name in declared}
    computed = [name for name in shapes if name not in inputs]
    missing = [name for name in computed if name not in declared]
    if missing:
        scope = _main_scope(model, registry)
        declared |= {name: _add_declaration(name, graph, scope) for name in missing}
    _declare(model, [(declared[name], dims) for name, dims in shapes.items()])
    if computed:
        # A new scope, because the first one may have cached the old shapes.
        scope = _main_scope(model, registry)
        for name in computed:
            _require_possible(name, shapes[name], scope)
    after = {name: declared_dims(declared[name].type) for name in before.keys() | shapes.keys()}
    changed = [name for name in (*inputs, *computed) if after[name] != before.get(name)]
    return tuple(_change(name, before.get(name), after[name] or (), name in inputs) for name in changed)


def _main_scope(model: ModelProto, registry: Registry) -> InferenceScope:
    scope, *_ = next(root_scopes(model, model, registry))
    scope.defined_names.update(name for node in model.graph.node for name in node.output)
    return scope


def _change(name: str, before: Dims | None, after: Dims, is_input: bool) -> str:
    if not is_input:
        return f"{name!r} is declared as {dims_text(after)}"
    old = "" if before is None else f" instead of {dims_text(before)}"
    return f"input {name!r} is declared as {dims_text(after)}{old}; the result may require this shape"


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
    # A size that is known only at run time may have any declared name, but no declared number.
    expected = tuple(None if isinstance(size, Symbol) else size for size in inferred)
    if _contradict(expected, dims) or any(
        isinstance(size, Symbol) and isinstance(dim, int) for size, dim in zip(inferred, dims, strict=False)
    ):
        reason = f"shape {dims_text(dims)} contradicts the inferred shape {dims_text(expected)} of {name!r}"
        raise UsageError(reason, remedy="declare the shapes of the graph inputs that it depends on")


def _contradict(known: Dims, dims: Dims) -> bool:
    """Return whether `dims` have a different rank than `known`, or replace a known size."""
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


def _declare(model: ModelProto, requests: Sequence[tuple[ValueInfoProto, Dims]]) -> None:
    """Write shapes into declarations, and replace the names of their dimensions in all other shapes."""
    olds = [_dims_before(value, dims) for value, dims in requests]
    sizes: dict[str, int | str] = {}
    repeated: dict[str, str] = {}
    new_names: set[int | str | None] = set()
    for (value, dims), before in zip(requests, olds, strict=True):
        for old, new in zip(before, dims, strict=True):
            if old == new and isinstance(old, str):
                repeated[old] = value.name
                continue
            new_names.add(new)
            if isinstance(old, str) and new is not None and sizes.setdefault(old, new) != new:
                raise _two_sizes(old, sizes[old], new, value.name)
    # A request that repeats the old name conflicts only if another dimension gets this name.
    for name, place in repeated.items():
        if name in sizes and name in new_names:
            raise _two_sizes(name, sizes[name], name, place)
    _replace_names(model, sizes)
    for (value, dims), before in zip(requests, olds, strict=True):
        _fill(value.type.tensor_type.shape, before, dims)


def _fill(shape: TensorShapeProto, before: Dims, dims: Dims) -> None:
    """Write the requested sizes and names of dimensions that had neither before."""
    shape.SetInParent()
    for position, (old, new) in enumerate(zip(before, dims, strict=True)):
        if position == len(shape.dim):
            shape.dim.add()
        if old is None and new is not None:
            _set_dim(shape.dim[position], new)


def _dims_before(value: ValueInfoProto, dims: Dims) -> Dims:
    """Return a value's declared dimensions, or as many `None` as `dims` has if it declares no shape.

    Raises:
        UsageError: the value is not a tensor, or its dimensions contradict `dims`.
    """
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
    return before or (None,) * len(dims)


def _two_sizes(dimension: str, one: int | str, other: int | str, value: str) -> UsageError:
    reason = f"dimension {dimension!r} would be both {one} and {other}, because of {value!r}"
    return UsageError(reason, remedy="give all dimensions with this name the same size")


def _set_dim(proto: TensorShapeProto.Dimension, dim: int | str) -> None:
    if isinstance(dim, str):
        proto.dim_param = dim
    else:
        proto.dim_value = dim


def _replace_names(model: ModelProto, sizes: Mapping[str, int | str]) -> None:
    """Replace named dimensions in all shapes of graphs and subgraphs; `sizes` has the new sizes or names.

    All names change at once: a new name may be the old name of another dimension.
    """
    for graph in nested_containers(root_graphs(model)) if sizes else ():
        for value in declarations_in(graph):
            for dim in named_dims(value.type):
                if dim.dim_param in sizes:
                    _set_dim(dim, sizes[dim.dim_param])
