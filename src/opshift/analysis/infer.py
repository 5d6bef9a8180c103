"""Inferred types, shapes and constants of all values of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opshift.converter.arguments import ShapesLike, read_shapes
from opshift.converter.declared_shapes import with_declared_shapes
from opshift.inference.root_scopes import nested_scopes, root_scopes
from opshift.inference.scope import Scope
from opshift.model.element_types import type_string
from opshift.model.files import ModelLike, model_of, reading_onnx_ir
from opshift.model.graphs import require_graph
from opshift.model.node import Tensor
from opshift.model.shared_data import FrozenRecord
from opshift.model.tensors import element_count
from opshift.registry.registry import Registry, registry_or_default
from opshift.runtimes.model_nodes import ordered

MAX_CONSTANT: Final = 1024
"""Maximum number of elements of a constant; larger initializers, such as weights, are not decoded."""

MAX_SHOWN: Final = 8
"""Maximum number of elements of a constant in the text of a value."""


class InferredValue(FrozenRecord):
    """Facts about a value that hold in every run.

    Attributes:
        type: type such as `tensor(float)` or `seq(tensor(float))`; `None` if it is unknown.
        shape: size of each dimension, `None` if it may differ between runs; `None` if the rank is unknown.
        constant: the value, if it is the same in every run and has at most 1,024 elements.
    """

    type: str | None
    shape: tuple[int | None, ...] | None
    constant: Tensor | None = None

    def __str__(self) -> str:
        dims = (
            "" if self.shape is None else f"[{', '.join('?' if d is None else str(d) for d in self.shape)}]"
        )
        value = ""
        if self.constant is not None:
            shown = [str(each) for each in self.constant.values[:MAX_SHOWN]]
            shown += ["..."] if len(self.constant.values) > MAX_SHOWN else []
            value = f" = [{', '.join(shown)}]"
        return f"{self.type or '?'}{dims}{value}"


class InferredModel(FrozenRecord):
    """Values by name, for each graph and function by its path, such as `graph` or `function local.Twice`."""

    graphs: Mapping[str, Mapping[str, InferredValue]]

    @property
    def values(self) -> Mapping[str, InferredValue]:
        """Values of the main graph by name: inputs, initializers and outputs of nodes."""
        return self.graphs["graph"]

    def __str__(self) -> str:
        return "\n".join(
            f"{path}: {name}: {value}"
            for path, values in self.graphs.items()
            for name, value in values.items()
        )


@reading_onnx_ir
def infer(model: ModelLike, *, shapes: ShapesLike = (), registry: Registry | None = None) -> InferredModel:
    """Infer facts about the values of a model, without running it.

    Declared types, and declared shapes of inputs and initializers, count as facts. Declared shapes of other
    values only complete inferred shapes.

    Args:
        model: a ModelProto of opshift or `onnx`, bytes, a path or a file object.
        shapes: shapes of inputs by name, as for `convert_version`.
        registry: operator definitions; by default the project's own.

    Raises:
        InvalidModel: `model` is not a model with a graph, or nodes read values that no node produces.
        UsageError: a shape is invalid, or contradicts the model.
    """
    proto, _ = model_of(model)
    require_graph(proto)
    registry = registry_or_default(registry)
    if shapes:
        proto, _ = with_declared_shapes(proto, read_shapes(shapes), registry)
    proto, _ = ordered(proto, registry)
    found: dict[str, Mapping[str, InferredValue]] = {}
    for root, _, path in root_scopes(proto, proto, registry):
        for scope, place in nested_scopes(root, path, names_attributes=True):
            found[place] = {name: _inferred_value(name, scope) for name in _value_names(scope)}
    return InferredModel(found)


def _value_names(scope: Scope) -> dict[str, None]:
    container = scope.container
    declared = [each if isinstance(each, str) else each.name for each in container.input]
    initializers = [each.name for each in getattr(container, "initializer", ())]
    sparse = [each.values.name for each in getattr(container, "sparse_initializer", ())]
    produced = [name for node in container.node for name in node.output if name]
    return dict.fromkeys([*declared, *initializers, *sparse, *produced])


def _inferred_value(name: str, scope: Scope) -> InferredValue:
    kind, stored = scope.element_type(name), scope.initializer(name)
    count = element_count(stored) if stored is not None else 0
    constant = scope.constant(name) if count is not None and count <= MAX_CONSTANT else None
    if constant is not None and len(constant.values) > MAX_CONSTANT:
        constant = None
    shape = scope.shape(name) if constant is None else constant.dims
    return InferredValue(None if kind is None else type_string(kind), shape, constant)
