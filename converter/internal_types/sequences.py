"""Replacement of sequences that stay inside of a model by the tensors that they contain.

A pass over the nodes follows each sequence as a list of tensors. Sequence operators become operators on these
tensors, and subgraphs pass the tensors. A loop that changes the number of tensors is unrolled if the number
of its iterations is constant. The pass replaces all sequences, or none.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import chain
from types import MappingProxyType

from opshift.converter.functions.inlined_call import InlinedCall, InlinedNodes
from opshift.converter.internal_types.sequence_operators import (
    INVALID,
    appended_tensors,
    concatenate,
    construct,
    count,
    erase,
    identity,
    insert,
    require_equal_shapes,
    select,
    split,
)
from opshift.converter.internal_types.sequence_pass import REMEDY, Context, SequencePass, Stack, Tensors
from opshift.inference.root_scopes import root_scopes
from opshift.model.attributes import TENSOR
from opshift.model.element_types import BY_NAME, BY_NUMBER
from opshift.model.errors import UNKNOWN_SHAPE, CannotConvert
from opshift.model.graphs import (
    defined_values,
    graphs_of,
    initializer_inputs,
    max_node_count,
    nested_nodes,
    passed_inputs,
    root_graphs,
)
from opshift.model.messages import GraphProto, ModelProto, NodeProto, ValueInfoProto
from opshift.model.node import Node, Tensor, Value
from opshift.model.types import Shape
from opshift.registry.registry import Registry
from opshift.rewriting.workspace import Allowances

ITERATION_WORK, BYTES_PER_WORK = 256, 64
"""Work, see `Context.work`, of each copy of a body: ITERATION_WORK + size in bytes / BYTES_PER_WORK."""


def rewrite_if(proto: NodeProto, out: SequencePass) -> None:
    """Let both branches of an If return the tensors of sequences in place of the sequences."""
    _require_graphs(proto, 2, 0, len(proto.output))
    copy, branches = out.copy_node(proto)
    lengths = []
    for inner, graph in branches:
        inner.run()
        lengths.append(_return_tensors(inner, graph))
        out.finish(inner, graph)
    if any(each != lengths[0] for each in lengths):
        reason = "the branches return sequences with different numbers of tensors"
        raise CannotConvert(reason, "sequence.dynamic", remedy=REMEDY)
    _set_outputs(copy, lengths[0], out)


def rewrite_loop(proto: NodeProto, out: SequencePass) -> None:
    """Replace each loop-carried sequence by its tensors.

    If that fails and the iteration count is constant, unroll the loop. If the count is unknown, a sequence
    that starts empty and gets one tensor per iteration becomes a scan output.
    """
    inputs = max(len(proto.input), 2)
    _require_graphs(proto, 1, inputs, max(inputs - 1, len(proto.output) + 1))
    start, added = len(out.result.node), out.context.added
    count = _iteration_count(Node.from_proto(proto), out)
    reasons = _carry_tensors(proto, out, may_stack=count is None)
    if count is None or not reasons:
        out.reasons |= reasons
    else:
        del out.result.node[start:]
        out.context.added = added
        _unroll_loop(proto, count, out)


def rewrite_sequence_map(proto: NodeProto, out: SequencePass) -> None:
    """Replace SequenceMap by a copy of the nodes in its body for each tensor."""
    _require_graphs(proto, 1, len(proto.input), len(proto.output))
    (body,) = graphs_of(proto)
    length = len(out.tensors(proto.input[0]))
    arguments: list[Sequence[str]] = []
    for name in proto.input:
        is_tensor = not out.is_sequence(name) and "(" not in (out.scope.element_type(name) or "(")
        arguments.append([name] * length if is_tensor else out.tensors(name))
    if any(len(each) != length for each in arguments):
        raise CannotConvert("the sequences have different numbers of tensors", "node.invalid", remedy=INVALID)
    start = len(out.result.node)
    rows = [_inline_iteration(proto, body, row, out) for row in zip(*arguments, strict=True)]
    out.require_at_most(len(out.result.node) - start, "nodes")
    for position, name in enumerate(proto.output):
        out.set_sequence(name, (out.element(_single_tensor(row[position])) for row in rows))


def _require_graphs(proto: NodeProto, count: int, inputs: int, outputs: int) -> None:
    """Refuse a node without `count` subgraphs that have `inputs` inputs and at least `outputs` outputs."""
    graphs = [*graphs_of(proto)]
    if len(graphs) != count or any(
        len(passed_inputs(each)) != inputs or len(each.output) < outputs for each in graphs
    ):
        reason = "the subgraphs do not match the inputs and outputs of the node"
        raise CannotConvert(reason, "node.invalid", remedy=INVALID)


def _carry_tensors(proto: NodeProto, out: SequencePass, *, may_stack: bool) -> dict[str, CannotConvert]:
    """Replace the sequences that a Loop carries by their tensors, or return the reasons against it.

    With `may_stack`, a sequence that starts empty and gets one tensor per iteration becomes a scan output.
    """
    copy, [(inner, graph)] = out.copy_node(proto)
    out.context.spend(ITERATION_WORK + graph.ByteSize() // BYTES_PER_WORK)
    declared = [deepcopy(value) for value in passed_inputs(graph)]
    defaults = initializer_inputs(graph)
    initializers = [deepcopy(value) for value in graph.input if value.name in defaults]
    del copy.input[:], graph.input[:]
    # complete the names, because trailing ones of the first two inputs may be absent
    names = [*proto.input, *[""] * (len(declared) - len(proto.input))]
    given = [out.tensors_if_sequence(name) for name in names]
    stacked = appended_tensors(proto, given) if may_stack else []
    for name, value, tensors in zip(names, declared, given, strict=True):
        copy.input.extend([name] if tensors is None else tensors)
        if tensors is None:
            graph.input.append(value)
        else:
            carried = [out.fresh(value.name) for _ in tensors]
            for new, tensor in zip(carried, tensors, strict=True):
                element_type = _declare_tensor(
                    graph.input.add(name=new), out.scope.element_type(tensor), value
                )
                if element_type:
                    inner.scope.declare(Value(new, element_type, None))
            inner.set_sequence(value.name, carried)
    graph.input.extend(initializers)
    inner.run()
    for each in stacked:
        # The tensor is returned as a scan output, and is not carried.
        inner.set_sequence(each.returned.name, ())
    lengths = _return_tensors(inner, graph)
    expected = [None if tensors is None else len(tensors) for tensors in given[1:]]
    if lengths != expected + [None] * (len(lengths) - len(expected)):
        reason = "the iterations change the number of tensors in a sequence"
        inner.reasons[out.place_of(proto)] = CannotConvert(reason, "sequence.dynamic", remedy=REMEDY)
    if not inner.reasons:
        shapes = {}
        for each in stacked:
            shapes[each.sequence] = require_equal_shapes(each, inner, out)
            name = inner.emit("Identity", [each.tensor])
            _declare_tensor(graph.output.add(name=name), inner.scope.element_type(each.tensor), each.returned)
        out.finish(inner, graph)
        _set_outputs(copy, lengths[1:], out, shapes)
    return inner.reasons


def _iteration_count(loop: Node, out: SequencePass) -> int | None:
    """Return the trip count that the first two inputs of a Loop set; `None` if it is unknown."""
    limit = out.scope.constant(loop.input(0)) if loop.input(0) else None
    condition = out.scope.constant(loop.input(1)) if loop.input(1) else Tensor("bool", (), (True,))
    if limit is None or condition is None or limit.element_type != "int64" or len(limit.values) != 1:
        return None
    return max(limit.scalar, 0) if any(condition.values) else 0


def _unroll_loop(proto: NodeProto, count: int, out: SequencePass) -> None:
    """Replace a Loop by a copy of the nodes in its body for each iteration."""
    out.require_at_most(count, "iterations")
    (body,) = graphs_of(proto)
    values = [_value_or_tensors(name, out) for name in proto.input[2:]]
    condition: str | Tensors = out.constant(Tensor("bool", (), (True,)))
    rows, start = [], len(out.result.node)
    for index in range(count):
        iteration = out.constant(Tensor("int64", (), (index,)))
        condition, *results = _inline_iteration(proto, body, [iteration, condition, *values], out)
        found = out.scope.constant(_single_tensor(condition))
        if found is None or found.values != (True,):
            reason = "the body of the loop returns a condition that is not known to be always true"
            raise CannotConvert(reason, "sequence.dynamic", remedy=REMEDY)
        values[:], row = results[: len(values)], results[len(values) :]
        rows.append(row)
    out.require_at_most(len(out.result.node) - start, "nodes")
    for name, value in zip(proto.output, values, strict=False):
        if isinstance(value, tuple):
            out.set_sequence(name, value)
        elif name:
            out.emit("Identity", [value], [name])
    for position, name in enumerate(proto.output[len(values) :]):
        if name and not rows:
            reason = f"{name!r} is empty, and its shape is unknown"
            raise CannotConvert(reason, UNKNOWN_SHAPE, remedy=REMEDY)
        if name:
            out.stack([_single_tensor(row[position]) for row in rows], 0, [name])


def _inline_iteration(
    proto: NodeProto, body: GraphProto, arguments: Sequence[str | Tensors], out: SequencePass
) -> list[str | Tensors]:
    """Add the nodes of one iteration of a body to the graph, and return the outputs of the iteration."""
    out.context.spend(ITERATION_WORK + body.ByteSize() // BYTES_PER_WORK)
    if body.sparse_initializer:
        reason = "the body has a sparse initializer"
        raise CannotConvert(reason, "tensor.unreadable", remedy="replace the initializer by a Constant node")
    # a copy, because each iteration needs its own facts
    inner = out.nested(deepcopy(body), "body", proto, is_inlined=True)
    names: dict[str, str] = {}
    for value, argument in zip(passed_inputs(body), arguments, strict=False):
        if isinstance(argument, tuple):
            inner.set_sequence(value.name, argument)
        else:
            names[value.name] = argument
            inner.scope.replace_producer(Node("Identity", (argument,), (value.name,), {}))
    for tensor in body.initializer:
        node = inner.result.node.add(op_type="Constant", output=[tensor.name])
        node.attribute.add(name="value", type=TENSOR).t.CopyFrom(tensor)
    inner.run()
    for error in inner.reasons.values():
        raise error
    results = [_value_or_tensors(value.name, inner) for value in body.output]
    returned = chain.from_iterable([each] if isinstance(each, str) else each for each in results)
    produced = {name for node in inner.result.node for name in node.output}
    new_names = {name: out.fresh(name) for name in dict.fromkeys(returned) if name in produced}
    call = type(proto)(input=names.values(), output=new_names.values())
    instance = InlinedCall(call, InlinedNodes([*names], [*new_names], inner.result.node), out.fresh)
    out.node_names.rename(instance.nodes)
    for node in instance.nodes:
        out.result.node.append(node)
        out.scope.replace_producer(Node.from_proto(node))
    names |= new_names
    return [
        names.get(each, each) if isinstance(each, str) else tuple(names.get(name, name) for name in each)
        for each in results
    ]


def _return_tensors(inner: SequencePass, graph: GraphProto) -> list[int | None]:
    """Replace sequence outputs of a subgraph by tensors.

    Return for each output the number of tensors, or `None` if it is not a sequence.
    """
    lengths: list[int | None] = []
    declared = [deepcopy(value) for value in graph.output]
    del graph.output[:]
    for value in declared:
        tensors = inner.tensors_if_sequence(value.name)
        lengths.append(None if tensors is None else len(tensors))
        if tensors is None:
            graph.output.append(value)
        for tensor in tensors or ():
            name = inner.emit("Identity", [tensor])
            _declare_tensor(graph.output.add(name=name), inner.scope.element_type(tensor), value)
    return lengths


def _declare_tensor(tensor: ValueInfoProto, inferred: str | None, sequence: ValueInfoProto) -> str | None:
    """Write and return the element type of a tensor: the inferred type, else the type in the sequence."""
    kind = BY_NUMBER.get(sequence.type.sequence_type.elem_type.tensor_type.elem_type)
    kind = BY_NAME.get(inferred or "", kind)
    if kind is None:
        return None
    tensor.type.tensor_type.elem_type = kind.number
    return kind.name


def _set_outputs(
    copy: NodeProto,
    lengths: Sequence[int | None],
    out: SequencePass,
    stacked: Mapping[str, Shape | None] = MappingProxyType({}),
) -> None:
    """Replace the sequence outputs of a copied node by their tensors, and append the stacked sequences."""
    names = [*copy.output]
    del copy.output[:]
    for name, length in zip(names, lengths, strict=False):
        if length is None:
            copy.output.append(name)
        elif name not in stacked:
            tensors = [out.fresh(f"{name}_{index}") for index in range(length)]
            copy.output.extend(tensors)
            out.set_sequence(name, tensors)
    for name, shape in stacked.items():
        copy.output.append(out.fresh(f"{name}_stack"))
        out.set_stack(name, Stack(copy.output[-1], shape))
    out.scope.replace_producer(Node.from_proto(copy))
    if not copy.output:  # all outputs were empty sequences, so no output remains
        del out.result.node[-1]


def _value_or_tensors(name: str, out: SequencePass) -> str | Tensors:
    tensors = out.tensors_if_sequence(name)
    return name if tensors is None else tensors


def _single_tensor(value: str | Tensors) -> str:
    if isinstance(value, tuple):
        reason = "the body returns a sequence in place of a tensor"
        raise CannotConvert(reason, "node.invalid", remedy=INVALID)
    return value


OPERATORS = {
    "SequenceConstruct": construct,
    "SequenceEmpty": construct,
    "SequenceInsert": insert,
    "SequenceErase": erase,
    "SequenceAt": select,
    "SequenceLength": count,
    "ConcatFromSequence": concatenate,
    "SplitToSequence": split,
    "SequenceMap": rewrite_sequence_map,
    "Identity": identity,
    "If": rewrite_if,
    "Loop": rewrite_loop,
}

SEQUENCE_OPERATORS = {name for name in OPERATORS if "Sequence" in name}


def has_sequences(model: ModelProto, registry: Registry) -> bool:
    """Return whether a model has nodes with the name of a sequence operator."""
    nodes = nested_nodes(*root_graphs(model), *model.functions)
    return not SEQUENCE_OPERATORS.isdisjoint(node.op_type for node in nodes)


def replace_sequences(
    model: ModelProto, registry: Registry, allowances: Allowances
) -> tuple[ModelProto | None, dict[str, CannotConvert]]:
    """Return a copy of a model without sequences, and the reasons against it, by place.

    The copy is `None` if there are reasons, or no sequences.
    """
    context = Context(OPERATORS, allowances, max_node_count(model))
    context.fresh_names.avoid(*root_graphs(model), *model.functions)
    copy, reasons = deepcopy(model), dict[str, CannotConvert]()
    for scope, container, path in root_scopes(model, copy, registry):
        visible = [scope.container] if scope.parent is None else [scope.container, scope.parent.container]
        values = SequencePass(scope, path, context, Counter(defined_values(*visible)))
        values.run()
        values.write_to(container)
        reasons |= values.reasons
    return copy if context.sequence_count and not reasons else None, reasons
