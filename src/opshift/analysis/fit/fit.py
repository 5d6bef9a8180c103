"""Convert a model so that a runtime implements all of its nodes."""

from __future__ import annotations

from collections.abc import Sequence, Set
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Final, NamedTuple, TypedDict, Unpack, overload

from opshift.analysis.fit.assume_constants import assume_constants
from opshift.analysis.fit.cheapest import cheapest
from opshift.analysis.fit.interface_types import interface_changes, interface_remedy, without_lacking_types
from opshift.analysis.fit.result import DoesNotFit, FitReport, Fitted
from opshift.converter.arguments import ShapesLike, read_shapes
from opshift.converter.convert import try_convert
from opshift.converter.declared_shapes import with_declared_shapes
from opshift.converter.options import (
    EVERY_OPERATOR,
    AllowLike,
    Options,
    RecognizeLike,
    Target,
    read_allow,
    read_recognize,
)
from opshift.converter.recognition.load import operator_names
from opshift.converter.recognition.result import Recognition
from opshift.converter.report import Report
from opshift.inference.facts import InferenceScope
from opshift.inference.root_scopes import graph_scopes
from opshift.model.attributes import INTS, TENSOR
from opshift.model.files import (
    BYTES_TYPES,
    BytesLike,
    FileLike,
    Model,
    ModelLike,
    ModelObject,
    is_message,
    is_onnx_ir,
    model_of,
    requiring_text,
    serialize_model,
)
from opshift.model.graphs import (
    ContainerProto,
    captured_names,
    defined_values,
    graphs_of,
    names_outside_nodes,
    nested_containers,
    nested_nodes,
    remove_messages,
    root_graphs,
    sort_by_keys,
)
from opshift.model.message_text import count_text
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.node import Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, opset_imports, without_version
from opshift.model.tensors import write_tensor
from opshift.model.types import element_type_of, fill_type
from opshift.registry.registry import Registry, registry_or_default
from opshift.registry.runtimes.files import RuntimeLike, runtime_of, without_fallback
from opshift.registry.runtimes.runtime import Runtime
from opshift.rewriting.workspace import FreshNames
from opshift.runtimes.check_support import RuntimeCheck
from opshift.runtimes.model_nodes import ModelNodes, ordered

CONSTANT_VALUE: Final = 2
"""Position of the input `constant_value` of Pad."""


FIRST_WITH_COMPUTED_AXES: Final = 13
"""First opset in which the axes of Squeeze are an input."""


def write_strict_forms(model: ModelProto, registry: Registry) -> None:
    """Change a model for runtimes that follow the definitions strictly; its results stay equal.

    `constant_value` of Pad becomes a scalar, inputs of subgraphs get element types, and ConstantOfShape gets
    an explicit float `value`, because a runtime may take the default for a double. A Reshape to a constant
    shape reads the data of a Reshape before it, because some optimizers fail to join them.
    """
    _join_reshapes(model, registry)
    names = FreshNames()
    names.avoid(*root_graphs(model))
    pads: list[tuple[ContainerProto, list[int], bool]] = []
    for scope, _ in graph_scopes(model, registry):
        pads.append((scope.container, [], scope.opset_of(DEFAULT_DOMAIN) < FIRST_WITH_COMPUTED_AXES))
        for position, node in enumerate(scope.container.node):
            if _pads_with_a_vector(node, scope):
                pads[-1][1].append(position)
            if _has_op_type(node, "ConstantOfShape") and not node.attribute:
                write_tensor(node.attribute.add(name="value", type=TENSOR).t, Tensor("float", (1,), (0.0,)))
            _declare_types(node, scope)
    # Nodes are added last, because scopes identify nodes by their positions.
    for container, positions, has_axes in pads:
        _add_scalars(container, positions, names, has_axes=has_axes)


def _join_reshapes(model: ModelProto, registry: Registry) -> None:
    """Let each Reshape to a constant shape read the data of the Reshape before it; remove unread Reshapes."""
    joined: list[tuple[ContainerProto, Set[str]]] = []
    sources: list[tuple[NodeProto, str]] = []
    for scope, _ in graph_scopes(model, registry):
        # Maps the result of each Reshape to the data of the first Reshape in its chain.
        data: dict[str, str] = {}
        has_joined = False
        for node in scope.container.node:
            source = node.input[0] if node.input and node.output else ""
            if source in data and _has_op_type(node, "Identity"):
                data[node.output[0]] = data[source]
            if not source or not _is_reshape(node, scope):
                continue
            data[node.output[0]] = data.get(source, source)
            shape = scope.constant(node.input[1]) if source in data else None
            if shape is not None and 0 not in shape.values:  # A 0 in the shape may copy a size of the data.
                sources.append((node, data[source]))
                has_joined = True
        if has_joined:
            joined.append((scope.container, data.keys()))
    # Nodes change last, because scopes know their inputs and identify them by their positions.
    for node, source in sources:
        node.input[0] = source
    for container, results in joined:
        _remove_unread(container, results)


def _is_reshape(node: NodeProto, scope: InferenceScope) -> bool:
    """Return whether a node is a valid Reshape whose shape is an input."""
    return (
        _has_op_type(node, "Reshape")
        and len(node.input) == 2
        and scope.element_type(node.input[1]) == "int64"
    )


def _remove_unread(container: ContainerProto, names: Set[str]) -> None:
    """Remove the nodes that produce the given values, if nothing reads the values."""
    read, is_removed = {*names_outside_nodes(container)}, []
    for node in reversed(container.node):
        is_removed.append(not names.isdisjoint(node.output) and read.isdisjoint(node.output))
        if not is_removed[-1]:
            read.update(node.input, *map(captured_names, graphs_of(node)))
    remove_messages(container.node, is_removed[::-1])


def _add_scalars(
    graph: ContainerProto, positions: Sequence[int], names: FreshNames, *, has_axes: bool
) -> None:
    """Add a Squeeze before each Pad at `positions`, to turn its `constant_value` into a scalar.

    With `has_axes`, the Squeeze gets the attribute `axes`, because some runtimes require it.
    """
    keys = list(range(0, 2 * len(graph.node), 2))
    for position in positions:
        inputs = graph.node[position].input
        source, inputs[CONSTANT_VALUE] = inputs[CONSTANT_VALUE], names.fresh(inputs[CONSTANT_VALUE])
        squeeze = graph.node.add(op_type="Squeeze", input=[source], output=[inputs[CONSTANT_VALUE]])
        if has_axes:
            squeeze.attribute.add(name="axes", type=INTS).ints.append(0)
        keys.append(2 * position - 1)
    sort_by_keys(graph.node, keys)


def _has_op_type(node: NodeProto, op_type: str) -> bool:
    return node.op_type == op_type and canonical_domain(node.domain) == DEFAULT_DOMAIN


def _pads_with_a_vector(node: NodeProto, scope: InferenceScope) -> bool:
    """Return whether a node is a Pad whose `constant_value` has rank 1."""
    is_given = (
        _has_op_type(node, "Pad") and len(node.input) > CONSTANT_VALUE and bool(node.input[CONSTANT_VALUE])
    )
    return is_given and scope.rank(node.input[CONSTANT_VALUE]) == 1


def _declare_types(node: NodeProto, scope: InferenceScope) -> None:
    """Declare the inferred element types of the inputs of subgraphs."""
    for graph in graphs_of(node):
        for value in graph.input:
            element_type = scope.child(graph).element_type(value.name)
            if element_type is not None and element_type_of(value.type) is None:
                value.type.Clear()
                fill_type(value.type, element_type, None)


def share_casts(model: ModelProto, original: ModelProto) -> int:
    """Remove casts that `original` lacks if an earlier node in the graph casts the value to the same type.

    Returns:
        The number of removed nodes.
    """
    own = {*defined_values(*root_graphs(original), *original.functions)}
    roots: list[ContainerProto] = [*root_graphs(model), *model.functions]
    return sum(_share_in_container(each, own) for each in nested_containers(roots))


def _share_in_container(container: ContainerProto, own: set[str]) -> int:
    required = own.union(*map(names_outside_nodes, nested_containers([container])))
    casts: dict[tuple[str, frozenset[bytes]], str] = {}
    shared: dict[str, str] = {}
    removed: set[int] = set()
    for position, node in enumerate(container.node):
        for reader in (node, *nested_nodes(*graphs_of(node))) if shared else ():
            if not shared.keys().isdisjoint(reader.input):
                reader.input[:] = [shared.get(name, name) for name in reader.input]
        is_cast = node.op_type == "Cast" and canonical_domain(node.domain) == DEFAULT_DOMAIN
        # Unchanged nodes may be invalid: check that the Cast has one input and one output.
        if is_cast and len(node.input) == len(node.output) == 1:
            attributes = frozenset(each.SerializeToString() for each in node.attribute)
            first = casts.setdefault((node.input[0], attributes), node.output[0])
            if first != node.output[0] and node.output[0] not in required:
                shared[node.output[0]] = first
                removed.add(position)
    remove_messages(container.node, [position in removed for position in range(len(container.node))])
    return len(shared)


class FitArguments(TypedDict, total=False):
    """Keyword arguments of `fit`."""

    allow: AllowLike
    provider_only: bool
    recognize: RecognizeLike
    fold: bool
    shapes: ShapesLike
    infer_shapes: bool
    registry: Registry | None


@overload
def fit(model: Model, runtime: RuntimeLike, **arguments: Unpack[FitArguments]) -> Fitted[Model]: ...
@overload
def fit(model: BytesLike, runtime: RuntimeLike, **arguments: Unpack[FitArguments]) -> Fitted[bytes]: ...
@overload
def fit(model: FileLike, runtime: RuntimeLike, **arguments: Unpack[FitArguments]) -> Fitted[ModelProto]: ...
def fit(
    model: ModelLike,
    runtime: RuntimeLike,
    *,
    allow: AllowLike = (),
    provider_only: bool = False,
    recognize: RecognizeLike = False,
    fold: bool = False,
    shapes: ShapesLike = (),
    infer_shapes: bool = False,
    registry: Registry | None = None,
) -> Fitted[ModelObject | bytes]:
    """Convert a model at the lowest cost so that a runtime implements all of its nodes.

    Args:
        model: a model in any form that `convert_version` accepts. It is not modified.
        runtime: a runtime, its name such as `"onnxruntime-1.20.1"`, or the path of a YAML file.
        allow: inexact conversions to allow, see `convert_version`; with `"approximate"`, nodes may also
            compute in float instead of double, and with `"interface-types"`, inputs and outputs of types that
            the runtime lacks get wider types with the same values.
        provider_only: for an execution provider such as `"onnxruntime-coreml"`: the provider itself has to
            implement all nodes, and none may fall back to the CPU. Other runtimes have no fallback.
        recognize: operators to recognize first, as for `convert_version`. Only operators with a kernel of the
            runtime are recognized, at the opset at which most have one. `True` leaves out operators with
            kernels known to be slow.
        fold: first replace values that are the same in every run by constants, as `simplify` does.
        shapes: shapes to declare before everything else, as for `convert_version`.
        infer_shapes: if nodes are refused, try again with the shapes that the package `onnx` infers.
        registry: operator definitions; by default the project's own.

    Returns:
        The converted model of the same class (bytes for bytes, ModelProto for a file), and the report.

    Raises:
        DoesNotFit: no conversion fits; the error lists the missing nodes at the opset with the fewest.
        InvalidModel: the model cannot be read, or is invalid.
        UsageError: `runtime` does not name a runtime, there is no data about it, or a shape is invalid.
    """
    found = runtime_of(runtime)
    if provider_only:
        found = without_fallback(found)
    options = fit_options(
        registry_or_default(registry), allow, recognize, shapes, fold=fold, infer_shapes=infer_shapes
    )
    if not is_message(model) and is_onnx_ir(model):
        from opshift.model.onnx_ir import OnnxIrMessage  # imported here: few models are onnx_ir models

        with OnnxIrMessage(model) as message:
            result, report = fit_message(message.proto, found, options)
            return Fitted(message.converted(result, inplace=False), report)
    result, report = fit_message(model_of(model)[0], found, options)
    return Fitted(serialize_model(result) if isinstance(model, BYTES_TYPES) else result, report)


def fit_options(
    registry: Registry,
    allow: AllowLike = (),
    recognize: RecognizeLike = False,
    shapes: ShapesLike = (),
    *,
    fold: bool = False,
    infer_shapes: bool = False,
) -> Options:
    """Return the options of `fit` for `fit_message`."""
    return Options(
        Target({}),
        registry,
        read_allow(allow),
        inplace=True,
        recognize=read_recognize(recognize, registry) if recognize else frozenset(),
        shapes=tuple(read_shapes(shapes).items()) if shapes else (),
        infer_shapes=infer_shapes,
        fold=fold,
    )


@requiring_text
def fit_message(model: ModelProto, runtime: Runtime, options: Options) -> tuple[ModelProto, FitReport]:
    """Fit a ModelProto like `fit`; `fit_options` returns the options."""
    declared, changes = with_declared_shapes(model, dict(options.shapes), options.registry)
    result, report = _fit_declared(declared, runtime, replace(options, shapes=()))
    return result, replace(report, declared_shapes=changes)


def _fit_declared(model: ModelProto, runtime: Runtime, options: Options) -> tuple[ModelProto, FitReport]:
    """Fit a model with declared shapes; fold it and recognize operators first, on request."""
    if options.fold:
        folded, plan = try_convert(deepcopy(model), replace(options, recognize=frozenset()))
        if folded is not None:
            result, report = _fit_declared(folded, runtime, replace(options, fold=False))
            return result, replace(report, folding=Report.of(plan, folded))
    options = replace(options, fold=False)
    if not options.recognize:
        return _fit_and_share_casts(model, runtime, options)
    converted, slow = recognize_first(model, runtime, options)
    options = replace(options, recognize=frozenset())
    if converted is not None:
        recognized, recognition = converted
        with suppress(DoesNotFit):  # the kernel is missing: fit the model without recognition
            result, report = _fit_and_share_casts(recognized, runtime, options)
            return result, replace(report, recognition=recognition, slow_operators=slow)
    result, report = _fit_and_share_casts(model, runtime, options)
    return result, replace(report, slow_operators=slow)


def _fit_and_share_casts(
    model: ModelProto, runtime: Runtime, options: Options
) -> tuple[ModelProto, FitReport]:
    result, report = _fit_with_types(model, runtime, options)
    shared = share_casts(result, model)
    return result, replace(report, cost=report.cost - shared, shared_casts=shared)


def _fit_with_types(model: ModelProto, runtime: Runtime, options: Options) -> tuple[ModelProto, FitReport]:
    """Fit a model with its own types, or else with wider types for types that the runtime lacks."""
    try:
        return _fit_or_raise(model, runtime, options)
    except DoesNotFit as error:
        widened = without_lacking_types(model, runtime, options.registry)
        if widened is None:
            raise
        try:
            result, report = _fit_or_raise(widened.model, runtime, options)
        except DoesNotFit:  # raise the first error, which is about the model with its own types
            raise error from None
        changes = tuple(interface_changes(model, result))
        if changes and "interface-types" not in options.allow:
            missing = [replace(each, remedy=interface_remedy(changes)) for each in error.missing]
            raise DoesNotFit(error.runtime, error.opset, missing) from None
        return result, replace(
            report,
            bridges=(*widened.replacements, *report.bridges),
            cost=report.cost + max(widened.added_nodes, 0),
            interface=changes,
            widening_nodes=widened.added_nodes,
        )


def _fit_or_raise(model: ModelProto, runtime: Runtime, options: Options) -> tuple[ModelProto, FitReport]:
    """Fit the model itself, else a copy with strict forms and assumed constants, else raise DoesNotFit."""
    model, nodes = ordered(model, options.registry)
    try:
        return cheapest(model, nodes, runtime, options)
    except DoesNotFit:
        changed = deepcopy(model)
        write_strict_forms(changed, options.registry)
        assumptions = assume_constants(changed, options.registry)
        if changed == model:
            raise
        with suppress(DoesNotFit):  # raise the first error, which is about the nodes of the model itself
            nodes = ModelNodes(changed, options.registry)
            result, report = cheapest(changed, nodes, runtime, options)
            return result, replace(report, assumptions=assumptions)
        raise


class FirstRecognition(NamedTuple):
    """Result of recognition before a model is fitted.

    Attributes:
        converted: the converted copy, with the report; `None` if nothing is recognized, or if the conversion
            is refused.
        slow: operators that were found, but whose kernels are slow, a sentence each.
    """

    converted: tuple[ModelProto, Report] | None
    slow: tuple[str, ...] = ()


def recognize_first(model: ModelProto, runtime: Runtime, options: Options) -> FirstRecognition:
    """Convert a copy of a model to an opset of a runtime, and recognize operators that have kernels there.

    The opset is the one with kernels for most operators, because a runtime may lack the newest versions.
    An operator is not recognized if the runtime may refuse one of its nodes or compute it wrongly, or if its
    kernel is slow and `options` do not name it.
    """
    newest = min(
        runtime.newest_import(DEFAULT_DOMAIN) or options.registry.newest_opset(),
        options.registry.newest_opset(),
    )
    own = opset_imports(model.opset_import, model.ir_version).get(DEFAULT_DOMAIN, newest)
    choices = {each: _with_kernel(options, runtime, each) for each in range(min(own, newest), newest + 1)}
    slow = runtime.slow_kernels.keys() - options.recognize
    opset, names = max(choices.items(), key=lambda each: (len(each[1] - slow), each[0]))
    notes: list[str] = []
    while names - slow:
        target = Target({DEFAULT_DOMAIN: opset}, runtime.ir_version)
        result, plan = try_convert(deepcopy(model), replace(options, target=target, recognize=names))
        if result is None:
            break
        report = Report.of(plan, result)
        recognized = {without_version(each.operator) for each in report.recognized}
        if not recognized:
            break
        if found := recognized & slow:
            notes += _slow_notes(report, found, runtime)
            names -= found
            continue
        support = RuntimeCheck(runtime).check(ModelNodes(result, options.registry))
        problems = (*(each.operator for each in support.missing), *support.doubtful)
        refused = recognized & set(map(without_version, problems))
        if not refused:
            return FirstRecognition((result, report), tuple(notes))
        names -= refused
    return FirstRecognition(None, tuple(notes))


def _slow_notes(report: Report, names: Set[str], runtime: Runtime) -> list[str]:
    return [
        f"{count_text(count, 'node')} of {operator}: {runtime.name} takes longer than for the "
        f"{count_text(replaced, 'node')} that compute the same ({runtime.slow_kernels[name]})"
        for operator, count, replaced in Recognition(report.recognized).groups()
        if (name := without_version(operator)) in names
    ]


def _with_kernel(options: Options, runtime: Runtime, opset: int) -> frozenset[str]:
    """Return the requested operators for which a runtime has a kernel at an opset."""
    registry, requested = options.registry, options.recognize
    every = operator_names(registry) if EVERY_OPERATOR in requested else ()
    found: set[str] = set()
    for name in (*(f"{DEFAULT_DOMAIN}.{each}" for each in every), *(requested - {EVERY_OPERATOR})):
        domain, _, op_type = name.rpartition(".")
        version = registry.known_at(op_type, opset if domain == DEFAULT_DOMAIN else 1, domain)
        if version is not None and runtime.kernel(version.id, {}):
            found.add(name)
    return frozenset(found)
