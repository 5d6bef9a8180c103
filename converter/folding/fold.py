"""Folding of a model: known values become constants, and nodes that change nothing are removed.

A value is known if the evaluator of constants computes it exactly, and it does not depend on a value that a
caller can override. Inputs, outputs and their names do not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from graphlib import CycleError, TopologicalSorter
from itertools import compress
from typing import NamedTuple

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS, since
from opshift.converter.folding.dead_nodes import RemovalRules, fixed_names, remove_dead_nodes
from opshift.converter.folding.decisions import Budget, Decisions, Rules, decide, define_node_outputs
from opshift.converter.functions.inlined_call import InlinedCall, InlinedNodes
from opshift.converter.functions.inlining import SORT_KEY_STRIDE, replace_call
from opshift.converter.ir_version.choose_version import freed_initializers
from opshift.converter.ir_version.initializer_inputs import is_described
from opshift.converter.options import Options
from opshift.converter.plan.changes import METADATA_KEY
from opshift.inference.constants import read_constant_node
from opshift.inference.function_scope import CallScope
from opshift.inference.root_scopes import root_scopes
from opshift.inference.scope import Scope
from opshift.inference.survey import MAX_SUBGRAPHS
from opshift.model.attributes import TENSOR
from opshift.model.errors import CannotConvert
from opshift.model.graphs import (
    Container,
    ContainerProto,
    graphs_of,
    initializer_inputs,
    is_graph,
    nested_containers,
    nested_nodes,
    remove_messages,
    root_graphs,
    sort_by_keys,
)
from opshift.model.indirect_reads import (
    names_in_training,
    names_read_indirectly,
    values_named_in_attributes,
)
from opshift.model.messages import FunctionProto, GraphProto, ModelProto, NodeProto
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import (
    DEFAULT_DOMAIN,
    LocalFunction,
    called_function,
    canonical_domain,
    function_id,
    opset_imports,
)
from opshift.model.tensors import has_inexact_nan, write_tensor
from opshift.model.types import shape_of
from opshift.registry.registry import Registry
from opshift.rewriting.constant_nodes import ANY_CONSTANT_SINCE
from opshift.rewriting.rewrite_node import INVALID_NODE_ERRORS
from opshift.rewriting.workspace import FreshNames, NodeNames


def fold(model: ModelProto, options: Options, *, owned: bool = False) -> tuple[ModelProto, tuple[str, ...]]:
    """Return a folded model, and sentences about the changes; a changed model is a copy unless `owned`.

    A model that defines a value twice in one graph, or replaces Constant by a function, remains unchanged.
    """
    if not model.HasField("graph") or not _is_supported(model):
        return model, ()
    nodes, size = _node_count(model), model.ByteSize()
    original = model
    if has_branches(model):
        model = _without_constant_branches(model, options, owned=owned)
        owned |= model is not original
    decisions = list(_decide_all(model, options))
    result = model
    if not owned:
        result = deepcopy(model)
        pairs = zip(decisions, _graphs_and_functions(result), strict=True)
        decisions = [_for_copy(each, copy) for each, copy in pairs]
    constants = _apply_decisions(result, decisions, options)
    if not constants and _node_count(result) == nodes and result.ByteSize() == size:
        return original, ()
    sentences: tuple[str, ...] = (_folding_sentence(constants, nodes, _node_count(result)),)
    if any(each.key == METADATA_KEY for each in result.metadata_props):
        # The record contains original nodes, which may read values that folding removes.
        remove_messages(result.metadata_props, [each.key == METADATA_KEY for each in result.metadata_props])
        sentences = (*sentences, "the record of an earlier reversible conversion is removed by folding")
    return result, sentences


def _graphs_and_functions(model: ModelProto) -> Iterator[ContainerProto]:
    yield from root_graphs(model)
    yield from model.functions


def _is_supported(model: ModelProto) -> bool:
    """Return whether all graphs have distinct names, and no function replaces Constant.

    An attribute must not have more than `MAX_SUBGRAPHS` graphs: folding them takes long, and no operator has
    such an attribute.
    """
    shadowed = any(
        each.name == "Constant" and canonical_domain(each.domain) == DEFAULT_DOMAIN
        for each in model.functions
    )
    nodes = nested_nodes(*_graphs_and_functions(model))
    is_limited = all(len(each.graphs) <= MAX_SUBGRAPHS for node in nodes for each in node.attribute)
    return not shadowed and is_limited and all(map(has_distinct_names, _graphs_and_functions(model)))


def has_distinct_names(root: ContainerProto) -> bool:
    """Return whether, in each (sub)graph or function, no node output has the name of another value."""
    for container in nested_containers([root]):
        outputs = [name for node in container.node for name in node.output if name]
        predefined = Container(container).predefined_names()
        if len(predefined.union(outputs)) < len(predefined) + len(outputs):
            return False
    return True


def _without_constant_branches(model: ModelProto, options: Options, *, owned: bool) -> ModelProto:
    """Inline the branches that `constant_branches` finds, in a copy of the model unless it is `owned`."""
    result = model
    while True:
        branches = [each for scope in _scopes(result, options) for each in constant_branches(scope)]
        if not branches:
            return result
        if result is model and not owned:
            result = deepcopy(model)  # the next iteration finds the branches of the copy
        else:
            inline_branches(branches, result)


def _scopes(model: ModelProto, options: Options) -> Iterator[CallScope]:
    """Yield a scope for each graph and function, with its constant inputs and trusted declarations."""
    has_dynamic_inputs = _has_dynamic_inputs(model)
    is_modern = model.ir_version >= FIRST_IR_WITH_STANDALONE_INITIALIZERS
    for scope, container, _ in root_scopes(model, model, options.registry):
        if not is_modern and not options.keep_initializer_inputs and container is model.graph:
            scope.constant_inputs = initializer_inputs(model.graph)
        if has_dynamic_inputs:
            scope.evaluation.trusted_claims = frozenset(name for name, _ in options.shapes)
        define_node_outputs(scope)
        yield scope


def _decide_all(model: ModelProto, options: Options) -> Iterator[Decisions]:
    read = names_read_indirectly(model)
    budget = Budget()
    is_modern = model.ir_version >= FIRST_IR_WITH_STANDALONE_INITIALIZERS
    for scope in _scopes(model, options):
        container = scope.container
        containers = list(nested_containers([container]))
        repeated = _repeated_names(containers)
        yield decide(
            scope,
            Rules(
                read.union(repeated, *map(fixed_names, containers)),
                repeated,
                budget,
                takes_initializers=is_modern and container is model.graph,
                is_ordered=all(map(_is_ordered, containers)),
                has_training=bool(model.training_info),
                has_devices=any(
                    getattr(node, "device_configurations", ()) for each in containers for node in each.node
                ),
            ),
        )


def _has_dynamic_inputs(model: ModelProto) -> bool:
    """Return whether an input has an unknown size or shape; then, `value_info` may hold for one size only."""
    shapes = [shape_of(value.type) for value in model.graph.input]
    return any(shape is None or None in shape for shape in shapes)


def _repeated_names(containers: Iterable[ContainerProto]) -> set[str]:
    """Return the names that are defined more than once in all containers together."""
    definitions: Counter[str] = Counter()
    for container in containers:
        definitions.update(Container(container).predefined_names())
        definitions.update(name for node in container.node for name in node.output)
    return {name for name, count in definitions.items() if count > 1 and name}


def _is_ordered(container: ContainerProto) -> bool:
    """Return whether no node has an input that the node itself or a later one produces."""
    later = {name for node in container.node for name in node.output}
    for node in container.node:
        if not later.isdisjoint(filter(None, node.input)):
            return False
        later.difference_update(node.output)
    return True


def _for_copy(decisions: Decisions, container: ContainerProto) -> Decisions:
    """Return the same decisions for a copy of their container."""
    graphs = [graph for node in container.node for graph in graphs_of(node)]
    nested = [_for_copy(each, graph) for each, graph in zip(decisions.nested, graphs, strict=True)]
    return decisions._replace(container=container, nested=nested)


def _apply_decisions(model: ModelProto, decisions: list[Decisions], options: Options) -> int:
    """Apply decisions to a model, remove dead nodes, and return the number of new constants."""
    for each in decisions:
        _replace_reshaped(each)
        _replace_aliases(each, {})
        detach_constants(each)
    is_modern = model.ir_version >= FIRST_IR_WITH_STANDALONE_INITIALIZERS
    imports = opset_imports(model.opset_import, model.ir_version)
    freed = freed_initializers(model, Container(model.graph), imports, options)
    named = values_named_in_attributes(model).names
    removal = RemovalRules(_PureNodes(model, options.registry).is_pure, named=named)
    kept = names_in_training(model)
    if model.training_info:
        kept |= {tensor.name for tensor in model.graph.initializer}
    main, *others = decisions
    remove_dead_nodes(main.container, removal._replace(removable_inputs=freed), kept)
    for each in others:
        remove_dead_nodes(each.container, removal, kept)
    return write_constants(main, as_initializers=is_modern) + sum(map(write_constants, others))


def _replace_reshaped(decisions: Decisions) -> None:
    for position, source in decisions.reshaped.items():
        decisions.container.node[position].input[0] = source
    for each in decisions.nested:
        _replace_reshaped(each)


def _replace_aliases(decisions: Decisions, outer: Mapping[str, str]) -> None:
    """Replace aliases in the inputs of nodes, also in subgraphs; `outer` has aliases of outer graphs."""
    names = {**outer, **decisions.aliases}
    if names:
        for node in decisions.container.node:
            for position, name in enumerate(node.input[:]):
                if name in names:
                    node.input[position] = _final_source(name, names)
    for each in decisions.nested:
        _replace_aliases(each, names)


def _final_source(name: str, names: Mapping[str, str]) -> str:
    while name in names:
        name = names[name]
    return name


class _PureNodes:
    """Pure nodes (no side effects): nodes of known domains, and calls of functions with only pure nodes."""

    def __init__(self, model: ModelProto, registry: Registry) -> None:
        self._registry = registry
        self._pure: set[LocalFunction] = set()
        called = {function_id(each): self._called(each) for each in model.functions}
        order = TopologicalSorter(called)
        # Functions that call themselves are not pure, and neither are their callers.
        with suppress(CycleError):
            order.prepare()
        while found := order.get_ready():
            self._pure.update(each for each in found if each in called and called[each] <= self._pure)
            order.done(*found)

    def is_pure(self, node: NodeProto) -> bool:
        """Return whether a node has outputs, and can be removed if nothing reads them."""
        return any(node.output) and all(map(self._has_no_effect, (node, *nested_nodes(*graphs_of(node)))))

    def _called(self, function: FunctionProto) -> set[LocalFunction]:
        """Return ids of nodes of unknown domains: called functions, or operators, which are never pure."""
        return {called_function(node) for node in nested_nodes(function) if not self._has_known_domain(node)}

    def _has_known_domain(self, node: NodeProto) -> bool:
        return self._registry.has_domain(canonical_domain(node.domain))

    def _has_no_effect(self, node: NodeProto) -> bool:
        return self._has_known_domain(node) or called_function(node) in self._pure


def _node_count(model: ModelProto) -> int:
    return sum(1 for _ in nested_nodes(*_graphs_and_functions(model)))


def _folding_sentence(constants: int, before: int, after: int) -> str:
    values = "1 value becomes a constant" if constants == 1 else f"{constants:,} values become constants"
    nodes = f"{after:,} of {before:,} nodes remain"
    return f"folding: {values}, and {nodes}" if constants else f"folding: {nodes}"


class ConstantBranch(NamedTuple):
    """Branch of an If that runs every time, and the position of the If in its container."""

    container: ContainerProto
    position: int
    graph: GraphProto


def has_branches(model: ModelProto) -> bool:
    """Return whether a model contains an If of any domain."""
    return any(node.op_type == "If" for node in nested_nodes(*root_graphs(model), *model.functions))


def constant_branches(scope: Scope) -> Iterator[ConstantBranch]:
    """Yield the branches that always run and can be inlined; skip Ifs inside of an If with such a branch."""
    container = scope.container
    for position, record in enumerate(scope.node_records):
        node = container.node[position]
        branch = _constant_branch(node, scope) if record[2] == "If" and not scope.is_call(record) else None
        if branch is not None:
            yield ConstantBranch(container, position, branch)
        else:
            for graph in graphs_of(node):
                yield from constant_branches(scope.child(graph))


def _constant_branch(node: NodeProto, scope: Scope) -> GraphProto | None:
    if canonical_domain(node.domain) != DEFAULT_DOMAIN or len(node.input) != 1:
        return None
    try:
        condition = scope.constant(node.input[0])
    except (CannotConvert, *INVALID_NODE_ERRORS):  # the node is invalid, which the plan reports
        return None
    if condition is None or condition.element_type != "bool" or len(condition.values) != 1:
        return None
    name = "then_branch" if condition.values[0] else "else_branch"
    found = [each.g for each in node.attribute if each.name == name and each.HasField("g")]
    return found[0] if len(found) == 1 and _can_inline(found[0], node, scope) else None


def _can_inline(branch: GraphProto, node: NodeProto, scope: Scope) -> bool:
    """Return whether the nodes of a branch, with its initializers as Constants, can replace the If."""
    if branch.input or branch.sparse_initializer or branch.quantization_annotation:
        return False
    if branch.initializer and scope.opset_of("") < ANY_CONSTANT_SINCE:
        return False
    produced = {name for each in branch.node for name in each.output}
    produced.update(each.name for each in branch.initializer)
    return len(branch.output) == len(node.output) and all(each.name in produced for each in branch.output)


def inline_branches(branches: Iterable[ConstantBranch], model: ModelProto) -> None:
    """Replace Ifs by the nodes of their branches."""
    names = FreshNames()
    names.avoid(*root_graphs(model), *model.functions)
    by_container: dict[int, list[ConstantBranch]] = {}
    for each in branches:
        by_container.setdefault(id(each.container), []).append(each)
    for found in by_container.values():
        container = found[0].container
        node_names = NodeNames(container.node)
        keys = [position * SORT_KEY_STRIDE for position in range(len(container.node))]
        for _, position, graph in found:
            node = container.node[position]
            inlined = InlinedCall(node, _nodes_of(graph, type(node)), names.fresh)
            if is_graph(container) or model.ir_version >= since("function_values"):
                container.value_info.extend(inlined.value_info)
            keys += replace_call(container, position, inlined.nodes, node_names)
        sort_by_keys(container.node, keys)


def _nodes_of(branch: GraphProto, node_class: type[NodeProto]) -> InlinedNodes:
    constants = []
    for tensor in branch.initializer:
        constant = node_class(op_type="Constant", output=[tensor.name])
        constant.attribute.add(name="value", type=TENSOR).t.CopyFrom(tensor)
        constants.append(constant)
    outputs = [each.name for each in branch.output]
    return InlinedNodes((), outputs, [*constants, *branch.node], branch.value_info)


def detach_constants(decisions: Decisions) -> None:
    """Replace nodes that become constants by Constant nodes without a value, one for each output.

    The producers of their inputs may then be dead. `write_constants` adds the values of nodes that remain.
    """
    container = decisions.container
    keys = [*range(len(container.node))]
    for position in [*keys] if decisions.constants else ():
        node = container.node[position]
        outputs = node.output[:]
        if not outputs or outputs[0] not in decisions.constants:
            continue
        _clear_operation(node)
        node.op_type = "Constant"
        for output in outputs[1:]:
            added = container.node.add()
            added.CopyFrom(node)
            added.name, added.output[:] = "", [output]
            keys.append(position)
        node.output.append(outputs[0])
    if len(keys) > len(set(keys)):
        sort_by_keys(container.node, keys)
    for each in decisions.nested:
        detach_constants(each)


def _clear_operation(node: NodeProto) -> None:
    """Clear a node, except its name, doc string and metadata."""
    for field, _ in node.ListFields():
        if field.name not in ("name", "doc_string", "metadata_props"):
            node.ClearField(field.name)
    node.DiscardUnknownFields()


def write_constants(decisions: Decisions, *, as_initializers: bool = False) -> int:
    """Write the constants of a graph or function and its subgraphs, and return the number of new ones.

    With `as_initializers`, values of other Constant nodes become initializers, too, but not in subgraphs.
    Graph outputs remain outputs of nodes.
    """
    container = decisions.container
    count = 0
    if as_initializers and is_graph(container):
        count = _add_initializers(decisions.constants, container)
    for node in container.node if decisions.constants else ():
        value = decisions.constants.get(node.output[0]) if node.output else None
        if value is not None:
            write_tensor(node.attribute.add(name="value", type=TENSOR).t, value)
            count += 1
    return count + sum(map(write_constants, decisions.nested))


def _add_initializers(constants: Mapping[str, Tensor], graph: GraphProto) -> int:
    """Replace Constant nodes by initializers; return how many of the new initializers are in `constants`."""
    fixed = fixed_names(graph)
    is_removed = [
        _is_constant(node) and node.output[0] not in fixed and _add_initializer(node, constants, graph)
        for node in graph.node
    ]
    removed = {node.output[0] for node in compress(graph.node, is_removed)}
    remove_messages(graph.node, is_removed)
    remove_messages(
        graph.value_info, [each.name in removed and not is_described(each) for each in graph.value_info]
    )
    return len(removed.intersection(constants))


def _is_constant(node: NodeProto) -> bool:
    return (
        node.op_type == "Constant"
        and canonical_domain(node.domain) == DEFAULT_DOMAIN
        and len(node.output) == 1
        and not any(each.ref_attr_name for each in node.attribute)
    )


def _add_initializer(node: NodeProto, constants: Mapping[str, Tensor], graph: GraphProto) -> bool:
    """Add the value of a Constant as an initializer; return whether this is possible.

    The initializer gets the doc string and metadata of the node, unless the tensor has its own.
    """
    name = node.output[0]
    stored = next((each.t for each in node.attribute if each.name == "value"), None)
    if stored is not None:  # copied without decoding, because the tensor may be large
        initializer = graph.initializer.add()
        initializer.CopyFrom(stored)
        initializer.name = name
    else:
        is_sparse = any(each.name == "sparse_value" for each in node.attribute)
        value = constants.get(name) or (None if is_sparse else read_constant_node(Node.from_proto(node)))
        if value is None or has_inexact_nan(value):
            return False
        initializer = graph.initializer.add()
        write_tensor(initializer, value, name)
    if node.doc_string and not initializer.doc_string:
        initializer.doc_string = node.doc_string
    # The message classes of an older `onnx` have no `metadata_props`.
    if getattr(node, "metadata_props", None) and not initializer.metadata_props:
        initializer.metadata_props.extend(node.metadata_props)
    return True
