"""Conversion and validation of a single node outside of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from opshift.converter.convert import convert_with
from opshift.converter.options import AllowLike, Options, TargetLike, read_target
from opshift.model.errors import is_collection, require_type, wrong_type
from opshift.model.files import requiring_text
from opshift.model.graphs import add_values, node_place
from opshift.model.messages import IR_VERSION, ModelProto
from opshift.model.operator_ids import canonical_domain, model_domain, opset_imports
from opshift.model.shared_data import FrozenRecord
from opshift.model.types import InputFacts, SerializableMessage
from opshift.registry.errors import require_node
from opshift.registry.registry import Registry, registry_or_default

if TYPE_CHECKING:
    from opshift.checker.findings import Finding


class NodeMessage(SerializableMessage, Protocol):
    """NodeProto of any library, such as `onnx`."""

    @property
    def domain(self) -> str:
        """Domain of the operator."""
        ...


NodeClass = TypeVar("NodeClass", bound=NodeMessage)


class ConvertedNode(FrozenRecord, Generic[NodeClass]):
    """Nodes that replace a converted node.

    Attributes:
        nodes: the nodes, in order; instances of the class of the original node.
        constants: TensorProtos to add as initializers: the nodes read them by name. They belong to the
            same library as the nodes.
        opsets: opset versions that the nodes are written for, by domain.
    """

    nodes: tuple[NodeClass, ...]
    constants: tuple[Any, ...]
    opsets: Mapping[str, int]


def convert_node(
    node: NodeClass,
    source: TargetLike,
    target: TargetLike,
    *,
    inputs: Mapping[str, InputFacts] | None = None,
    taken: Iterable[str] = (),
    allow: AllowLike = (),
    registry: Registry | None = None,
) -> ConvertedNode[NodeClass]:
    """Convert a NodeProto from one opset to another, as `convert_version` does for nodes of a model.

    Args:
        node: a NodeProto (the project's or `onnx`'s); it is not modified.
        source: opset that the node is written for: a version of the node's domain, or any form of `target`
            in `convert_version`.
        target: opset to convert to, in any form that `source` can have.
        inputs: facts about the values that the node reads, by name: a type such as `"float"`,
            `"tensor(float)"` or `"seq(tensor(float))"`, a pair of type and dimensions (sizes, names or
            `None`), a TypeProto, or the value as a TensorProto. A conversion step that needs an unknown fact
            refuses the node.
        taken: names that new values must not use.
        allow: inexact conversions to allow, see `convert_version`.
        registry: operator definitions; by default those of opshift and of installed packages.

    Raises:
        ConversionRefused: the node cannot be converted, or a required fact about its inputs is missing.
        UsageError, UnknownOpset, UnknownDomain: an argument is invalid.
        InvalidModel: a name in the node is not UTF-8.
    """
    registry = registry_or_default(registry)
    model = model_of_node(node, source, inputs, taken, registry)
    before = {each.name for each in model.graph.initializer}
    options = Options.of(
        _of_domain(target, node.domain), allow=allow, ir_version="keep", registry=registry, inplace=True
    )
    convert_with(model, options)
    node_class: Any = type(node)
    tensor_class = type(node_class().attribute.add().t)
    return ConvertedNode(
        tuple(node_class.FromString(each.SerializeToString()) for each in model.graph.node),
        tuple(
            tensor_class.FromString(each.SerializeToString())
            for each in model.graph.initializer
            if each.name not in before
        ),
        opset_imports(model.opset_import),
    )


def validate_node(
    node: NodeMessage,
    opset: TargetLike,
    inputs: Mapping[str, InputFacts] | None = None,
    *,
    registry: Registry | None = None,
) -> tuple[Finding, ...]:
    """Return the violations of the specification by a node, as `opshift.check` finds them in a model.

    Args:
        node: a NodeProto of opshift or `onnx`.
        opset: opset of the node's domain as a number, or any form of `target` in `convert_version`.
        inputs: known types, shapes or values of the inputs, by name, as in `convert_node`. Rules that need
            unknown facts report nothing.
        registry: operator definitions; by default those of opshift and of installed packages.

    Raises:
        UsageError, UnknownOpset, UnknownDomain: an argument is invalid.
        InvalidModel: a name in the node is not UTF-8.
    """
    from opshift.checker.check import check

    registry = registry_or_default(registry)
    model = model_of_node(node, opset, inputs, (), registry)
    place = node_place("graph", model.graph.node[0])
    return tuple(each for each in check(model, registry=registry) if each.place.startswith(place))


@requiring_text
def model_of_node(
    node: NodeMessage,
    opset: TargetLike,
    inputs: Mapping[str, InputFacts] | None,
    taken: Iterable[str],
    registry: Registry,
) -> ModelProto:
    """Return a model with one node; arguments and errors as in `convert_node`, with `opset` as `source`."""
    require_node(node)
    require_type("inputs", inputs, (Mapping, type(None)), "facts by input name")
    names = tuple(taken) if is_collection(taken) else (None,)
    if not all(isinstance(each, str) for each in names):
        raise wrong_type("taken", taken, "a list of names")
    model = ModelProto(ir_version=IR_VERSION)
    for domain, version in read_target(_of_domain(opset, node.domain), registry).opsets.items():
        model.opset_import.add(domain=model_domain(domain), version=version)
    model.graph.node.add().ParseFromString(node.SerializeToString())
    add_values(model.graph, inputs or {}, map(str, names))
    return model


def _of_domain(opset: TargetLike, domain: str) -> TargetLike:
    is_number = isinstance(opset, int) and not isinstance(opset, bool)
    return {canonical_domain(domain): opset} if is_number else opset
